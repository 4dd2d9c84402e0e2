// What an error is about: the function and the argument, as def() was told; and what other overloads have said.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/python/refusals.h"

#if NB_VERSION_MAJOR < 3
#error "dlbridge/nanobind.h needs nanobind 3 or newer: an older copy comes first on the include path"
#endif

namespace dlbridge::detail {

// The functions of one name in one scope, all of def(). Never freed: nanobind's functions are not, either.
struct OverloadSet {
  PyObject* scope;
  std::string name;
  struct Arity {
    std::size_t least, most;
  };
  std::vector<Arity> arities;  // in the order of their definition

  // Whether a call that has reached one overload may reach one behind it.
  bool another_follows(std::size_t overload) const {
    const Arity own = arities[overload];
    for (std::size_t i = overload + 1; i < arities.size(); ++i)
      if (arities[i].least <= own.most && own.least <= arities[i].most) return true;
    return false;
  }
};
[[gnu::visibility("hidden"), gnu::cold, gnu::noinline]] inline OverloadSet& overload_set(PyObject* scope,
                                                                                         const char* name) {
  static auto* const all = new std::vector<OverloadSet*>();
  for (OverloadSet* one : *all)
    if (one->scope == scope && one->name == name) return *one;
  return *all->emplace_back(new OverloadSet{scope, name, {}});
}

struct NanobindFunction {
  std::string callable;  // "blur()", "Filter.blur()", "Filter()"
  std::vector<std::string> arguments;
  OverloadSet* overloads = nullptr;
  std::size_t overload = 0;
};

struct NanobindPlace {
  const NanobindFunction* function = nullptr;  // null: unknown, as in nb::cast<Arg<…>>(object) and module.def()
  std::size_t index = 0;
  bool first_pass = false;               // only tried: refusals are silent
  Alternatives* alternatives = nullptr;  // set: refusals are collected here

  const char* argument() const noexcept { return function == nullptr ? "a" : function->arguments[index].c_str(); }
  [[gnu::cold, gnu::noinline]] std::string prefix() const {
    return function == nullptr ? std::string() : joined({function->callable, ": argument '", argument(), "': "});
  }
  static bool default_is_none() noexcept { return false; }  // def() has refused it

  [[gnu::cold, gnu::noinline]] bool another_follows(const std::string& reason,
                                                    int distance = Refusal::kFarthest) const {
    if (alternatives != nullptr) return alternatives->add(reason, distance), true;
    if (function == nullptr || !function->overloads->another_follows(function->overload)) return false;
    if (refusals().call != function->overloads) refusals().begin(function->overloads);
    refusals().all.push_back(refusal(reason, distance));
    return true;
  }
  [[gnu::cold, gnu::noinline]] void throw_if_others_refused(const std::string& reason,
                                                            int distance = Refusal::kFarthest) const {
    if (function == nullptr || refusals().call != function->overloads) return;
    std::vector<Refusal> all = std::exchange(refusals().all, {});
    if (all.empty()) return;
    all.push_back(refusal(reason, distance));
    throw ::nanobind::type_error(refusals_text(function->callable, all).c_str());
  }
  [[noreturn]] static void throw_pending() { throw ::nanobind::python_error(); }

  [[gnu::cold, gnu::noinline]] Refusal refusal(const std::string& reason, int distance) const {
    return {joined({"argument '", argument(), "': ", reason}), index, distance};
  }
};

}  // namespace dlbridge::detail
