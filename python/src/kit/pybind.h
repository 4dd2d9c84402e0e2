// The kit on pybind11's side, which serves what is cold. A PythonError passes through its functions as its own
// exception does; a C slot that calls pybind11 runs in guarded_pybind().
#pragma once

#include <pybind11/pybind11.h>

#include "protocols/common/boundary.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

namespace pyb = ::pybind11;

// For callers that know no pybind11: its exception becomes a PythonError.
template <class Body>
auto without_pybind(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (pyb::error_already_set& error) {
    error.restore();
    throw PythonError();
  }
}
template <class Body>
auto guarded_pybind(Body&& body) noexcept -> decltype(body()) {
  return guarded([&] { return without_pybind(body); });
}

// Null where the object has no such attribute. What else reading it raises passes through, where pybind11's hasattr and
// getattr with a default swallow it.
inline pyb::object find_attribute(pyb::handle object, const char* name) {
  const Ref key = owned(PyUnicode_InternFromString(name));
  Ref value = optional_attribute(object.ptr(), key.get());
  if (!value && PyErr_Occurred() != nullptr) throw pyb::error_already_set();
  return pyb::reinterpret_steal<pyb::object>(value.release());
}

// An integer argument of a bound function. What its __index__ raises passes through: pybind11's own integers take that
// for "incompatible arguments".
template <class T>
struct Int {
  T value{};
  operator T() const noexcept { return value; }  // NOLINT(google-explicit-constructor): it stands for its number
};

// Once, when the module is made.
inline void translate_python_errors() {
  pyb::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const PythonError&) {  // it is set
    }
  });
}

}  // namespace dlbridge::py

template <class T>
struct pybind11::detail::type_caster<dlbridge::py::Int<T>> {
  PYBIND11_TYPE_CASTER(dlbridge::py::Int<T>, const_name("int"));

  bool load(handle source, bool /*convert*/) {
    if (PyIndex_Check(source.ptr()) == 0) return false;
    const auto number = reinterpret_steal<object>(PyNumber_Index(source.ptr()));
    if (!number) throw error_already_set();
    make_caster<T> exact;
    if (!exact.load(number, false)) return false;
    value = {cast_op<T>(exact)};
    return true;
  }
};
