// The buffer protocol (PEP 3118), both ways.
#pragma once

#include "protocols/common/read.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::buffer {

// Acquires a read-only-tolerant buffer and keeps it until `self` and its last export are gone. kAbsent where the
// type has no buffer.
py::Read read(PyObject* object, py::ReadCall& call, py::TensorObject* self);

// HostTensor's bf_getbuffer and bf_releasebuffer.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

}  // namespace dlbridge::buffer
