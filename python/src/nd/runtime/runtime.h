// The runtime in Python: memory, streams, events, graphs, devices; what dlbridge.nd.cuda re-exports.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

#include "dlbridge/stream.h"
#include "ndarray/runtime/storage.h"

namespace dlbridge::py::nd {

void init_runtime(pybind11::module_ m);
void init_library_functions(PyObject* module);  // what dlbridge/nd/_nvidia.py opens and calls

// Whether the calling thread is inside a `with nd.cuda.Device(i):` block.
bool inside_device_block() noexcept;

// A MemoryPointer that holds `storage` (a new reference of its own), `offset` bytes into it. New reference.
PyObject* make_memory_pointer(::dlbridge::nd::Storage* storage, std::ptrdiff_t offset);

// Reads a MemoryPointer, ours or another library's (an object with `ptr`, and `mem.size` or `size`, which is held).
// `storage` gets a new reference. False: it has no `ptr`. What reading it raises is thrown, with the error set.
bool parse_memory_pointer(PyObject* object, ::dlbridge::nd::Storage*& storage, void*& pointer);

// A stream as Python hands it over: None is the current one of `device`, 0 the legacy stream; an object with
// __cuda_stream__ or `ptr`, or a handle.
StreamHandle parse_stream_object(PyObject* object, int device);

}  // namespace dlbridge::py::nd
