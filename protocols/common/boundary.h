// The boundary between C++ and CPython. Inside, a function that finds an error sets it and throws; the slots that
// CPython calls run in guarded(), which turns whatever is thrown into the pending exception and the slot's failure
// value.
#pragma once

#include <type_traits>

#include "protocols/common/errors.h"

namespace dlbridge::py {

// What a slot returns when a Python error is set: null or -1.
template <class Result>
constexpr Result failure_value() noexcept {
  static_assert(!std::is_same_v<Result, bool>, "of a bool, -1 would be success");
  if constexpr (std::is_pointer_v<Result>) return nullptr;
  else return static_cast<Result>(-1);
}

// Runs the body of a slot.
template <class Body>
[[gnu::always_inline]] inline auto guarded(Body&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    raise_current_exception();
    return failure_value<decltype(body())>();
  }
}

// Sets the exception, formatted as PyErr_Format() does, and throws.
template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void throw_error(PyObject* type, const char* format, Args... args) {
  PyErr_Format(type, format, args...);
  throw PythonError();
}
[[noreturn, gnu::cold]] inline void throw_issue(const char* operation, ErrorCode code, const std::string& message) {
  raise(operation, code, message);
  throw PythonError();
}
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_issue(const char* operation, const Status& status) {
  raise(operation, status.issue());
  throw PythonError();
}
inline void throw_if_bad(const Status& status, const char* operation) {
  if (!status.ok()) [[unlikely]]
    throw_issue(operation, status);
}

// For calls that say "a Python error is set" by null, -1 or false.
inline PyObject* checked(PyObject* object) {
  if (object == nullptr) [[unlikely]]
    throw PythonError();
  return object;
}
inline void checked(int result) {
  if (result < 0) [[unlikely]]
    throw PythonError();
}
inline void checked(bool done) {
  if (!done) [[unlikely]]
    throw PythonError();
}
// A number from a call that says so by -1, which is a number, too.
template <class Number>
Number checked_number(Number number) {
  if (number == static_cast<Number>(-1) && PyErr_Occurred() != nullptr) [[unlikely]]
    throw PythonError();
  return number;
}
// A new reference that is there.
inline Ref owned(PyObject* made) { return Ref(checked(made)); }

}  // namespace dlbridge::py
