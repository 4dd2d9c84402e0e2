// The C ABI's table, fetched for a module of pybind11: errors as its exceptions, and ours as Python's.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <exception>

#include "dlbridge/python/api.h"

#if PYBIND11_VERSION_MAJOR < 3
#error "dlbridge/pybind11.h needs pybind11 3 or newer: an older copy comes first on the include path"
#endif

namespace dlbridge {

namespace detail {

[[gnu::visibility("hidden")]] inline bool is_connected = false;

[[gnu::cold, gnu::noinline]] inline void connect_now() {
  if (fetch_api() == nullptr) throw ::pybind11::import_error(PythonError().message());
  ::pybind11::register_local_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const Error& error) {
      api_table->raise(static_cast<std::uint8_t>(error.code()), error.what_for_caller().c_str());
    }
  });
  is_connected = true;
}
// Each caster's first act: the functions of a module may run before it calls connect(), or without.
inline void connected() {
  if (!is_connected) [[unlikely]]
    connect_now();
}

inline ::pybind11::handle checked_result(PyObject* object) {
  if (object == nullptr) throw ::pybind11::error_already_set();
  return object;
}

}  // namespace detail

// Imports dlbridge now rather than at the first call, and turns dlbridge::Error into the exceptions of the package.
// Call it in PYBIND11_MODULE.
inline void connect() { detail::connected(); }

}  // namespace dlbridge
