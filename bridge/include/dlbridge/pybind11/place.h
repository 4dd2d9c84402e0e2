// What an error is about: the function and the argument that are being loaded; and what other overloads have said.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/python/refusals.h"

namespace dlbridge::detail {

namespace pyd = ::pybind11::detail;

struct [[gnu::visibility("hidden")]] Place {
  const pyd::function_record* function = nullptr;  // null: unknown, as in object.cast<Arg<…>>()
  std::size_t index = 0;
  bool first_pass = false;  // pybind11 only tries the overload, and asks again: refusals are silent

  // What was said of it with py::arg; there is none for *args.
  const pyd::argument_record* declared() const {
    if (function == nullptr) return nullptr;
    const std::size_t i = index - (function->has_args && index > function->nargs_pos ? 1 : 0);
    return i < function->args.size() ? &function->args[i] : nullptr;
  }
  [[gnu::cold, gnu::noinline]] std::string argument() const {
    if (function == nullptr) return "a";
    const char* name = declared() != nullptr ? declared()->name : nullptr;
    return name != nullptr && *name != '\0' ? name
                                            : joined({"arg", std::to_string(index - (function->is_method ? 1 : 0))});
  }
  // "blur()", "Filter.blur()", "Filter()".
  [[gnu::cold, gnu::noinline]] std::string callable() const {
    std::string owner;
    if (PyObject* scope = function->scope.ptr(); scope != nullptr && PyType_Check(scope)) {
      const char* name = reinterpret_cast<PyTypeObject*>(scope)->tp_name;
      const char* dot = std::strrchr(name, '.');
      owner = dot == nullptr ? name : dot + 1;
      if (function->is_constructor) return joined({owner, "()"});
      if (function->name == nullptr || *function->name == '\0') return joined({"property of ", owner});
      owner += ".";
    }
    return joined({owner, function->name, "()"});
  }
  [[gnu::cold, gnu::noinline]] std::string prefix() const {
    return function == nullptr ? std::string() : joined({callable(), ": argument '", argument(), "': "});
  }
  bool default_is_none() const { return declared() != nullptr && declared()->value && declared()->value.is_none(); }

  // pybind11 asks all overloads without conversion, and then again with it. Reasons are collected the second time and
  // given by the last overload that takes arrays.
  //
  // True where something else is asked after this refusal: another overload, or the other operand of an operator.
  [[gnu::cold, gnu::noinline]] bool another_follows(const std::string& reason,
                                                    int distance = Refusal::kFarthest) const {
    if (function == nullptr) return false;
    if (function->is_operator) return true;
    if (function->next == nullptr || refusals().call == function) return false;
    refusals().all.push_back(refusal(reason, distance));
    return true;
  }
  // Throws the refusals of all overloads; returns where this one is alone.
  [[gnu::cold, gnu::noinline]] void throw_if_others_refused(const std::string& reason,
                                                            int distance = Refusal::kFarthest) const {
    if (function == nullptr || refusals().call != function) return;
    std::vector<Refusal> all = std::exchange(refusals().all, {});
    if (all.empty()) return;
    all.push_back(refusal(reason, distance));
    throw ::pybind11::type_error(refusals_text(callable(), all));
  }
  [[noreturn]] static void throw_pending() { throw ::pybind11::error_already_set(); }

  [[gnu::cold, gnu::noinline]] Refusal refusal(const std::string& reason, int distance) const {
    return {joined({"argument '", argument(), "': ", reason}), index, distance};
  }
};
inline void note_first_pass(const pyd::function_record& function) { refusals().begin(&function); }

// The place for casters that lie within another's, as that of Arg in std::optional<Arg<…>>.
[[gnu::visibility("hidden")]] inline constinit thread_local const Place* loading = nullptr;

class [[gnu::visibility("hidden")]] Loading {
 public:
  explicit Loading(const Place& place) noexcept : before_(std::exchange(loading, &place)) {}
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;
  ~Loading() { loading = before_; }

 private:
  const Place* before_;
};
inline Place current_place(bool convert) noexcept {
  return loading != nullptr ? *loading : Place{nullptr, 0, !convert};
}

}  // namespace dlbridge::detail
