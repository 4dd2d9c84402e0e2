// Python objects that native code releases on any thread: with the GIL at once, without it later, never waiting for
// it (the thread may hold a lock that the GIL's holder wants).
#pragma once

#include <cstdint>

#include "protocols/common/python.h"

namespace dlbridge::py::nd {

// Drops a reference.
void drop_reference(PyObject* object) noexcept;
// Calls function(pointer, device), then done(context), which keeps the function until then. An exception is reported as
// unraisable.
struct FreeCall {
  PyObject* function;
  std::uintptr_t pointer;
  int device;
  void (*done)(void* context) noexcept;
  void* context;
};
void call_to_free(const FreeCall& call) noexcept;
// With the GIL: does what other threads have left.
void run_deferred() noexcept;

// The release function of an Owner whose context is a Python object.
inline void release_object(void* object) noexcept { drop_reference(static_cast<PyObject*>(object)); }

}  // namespace dlbridge::py::nd
