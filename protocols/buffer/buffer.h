// The buffer protocol (PEP 3118), both ways.
#pragma once

#include "protocols/common/tensor_object.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::buffer {

using dlpack::Read;

// Acquires a read-only-tolerant buffer and keeps it until `self` and its last export are gone. kAbsent where the
// type has no buffer.
Read read(PyObject* object, py::TensorObject* self);

// Takes the buffer of `object` into self->view with its owner, without decoding it: for protocols whose dictionary
// points into a buffer object. False with a Python error set.
bool hold(PyObject* object, py::TensorObject* self);

// True while self->tensor.owner is a held Py_buffer (self->view is valid): for the garbage collector.
bool holds_view(const py::TensorObject* self) noexcept;

// HostTensor's bf_getbuffer and bf_releasebuffer.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

}  // namespace dlbridge::buffer
