// The kit on pybind11's side, which serves what is cold. A PythonError passes through its functions as its own
// exception does; a C slot that calls pybind11 runs in guarded_pybind().
#pragma once

#include <pybind11/pybind11.h>

#include "protocols/common/boundary.h"

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
