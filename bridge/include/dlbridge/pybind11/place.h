// What an error is about: the function and the argument that are being loaded; and what other overloads have said.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

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
  std::string argument() const {
    if (function == nullptr) return "a";
    const char* name = declared() != nullptr ? declared()->name : nullptr;
    return name != nullptr && *name != '\0' ? name : "arg" + std::to_string(index - (function->is_method ? 1 : 0));
  }
  // "blur()", "Filter.blur()", "Filter()".
  std::string callable() const {
    std::string owner;
    if (PyObject* scope = function->scope.ptr(); scope != nullptr && PyType_Check(scope)) {
      const char* name = reinterpret_cast<PyTypeObject*>(scope)->tp_name;
      const char* dot = std::strrchr(name, '.');
      owner = dot == nullptr ? name : dot + 1;
      if (function->is_constructor) return owner + "()";
      if (function->name == nullptr || *function->name == '\0') return "property of " + owner;
      owner += ".";
    }
    return owner + function->name + "()";
  }
  std::string prefix() const { return function == nullptr ? "" : callable() + ": argument '" + argument() + "': "; }
  bool default_is_none() const { return declared() != nullptr && declared()->value && declared()->value.is_none(); }
};

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

// pybind11 asks all overloads without conversion, and then again with it. Reasons are collected the second time and
// given by the last overload that takes arrays.
struct [[gnu::visibility("hidden")]] Overloads {
  const pyd::function_record* last = nullptr;
  std::string refusals;
};
[[gnu::visibility("hidden"), gnu::noinline]] inline Overloads& overloads() {
  thread_local Overloads of_this_thread;
  return of_this_thread;
}
inline void note_first_pass(const pyd::function_record& function) {
  Overloads& all = overloads();
  all.last = &function;
  all.refusals.clear();
}

// True where something else is asked after this refusal: another overload, or the other operand of an operator.
[[gnu::cold, gnu::noinline]] inline bool another_follows(const Place& place, const std::string& reason) {
  if (place.function == nullptr) return false;
  if (place.function->is_operator) return true;
  if (place.function->next == nullptr || overloads().last == place.function) return false;
  overloads().refusals += "\n    argument '" + place.argument() + "': " + reason;
  return true;
}
// The refusals of the overloads before, each on a line; empty: there are none.
[[gnu::cold, gnu::noinline]] inline std::string refusals_before(const Place& place) {
  if (place.function == nullptr || overloads().last != place.function) return {};
  return std::exchange(overloads().refusals, {});
}

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_reason(const Place& place, const std::string& reason) {
  const std::string before = refusals_before(place);
  if (before.empty()) throw ::pybind11::type_error(place.prefix() + reason);
  throw ::pybind11::type_error(place.callable() + ": no overload takes these arguments:" + before + "\n    argument '" +
                               place.argument() + "': " + reason);
}

}  // namespace dlbridge::detail
