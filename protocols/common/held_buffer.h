// A Py_buffer that a tensor object holds: of the buffer protocol, and of the object that an interface's `data` names.
#pragma once

#include "protocols/common/tensor_object.h"

namespace dlbridge::py {

// Runs where the tensor object dies, under the GIL (tensor_object.h).
inline void release_held_buffer(void* view) noexcept {
  ErrorGuard guard;
  outlive_thread_exit([view] { PyBuffer_Release(static_cast<Py_buffer*>(view)); });
}

// Takes the buffer of `object` into self->view with its owner, without decoding it. False with a Python error set.
// Read-only is asked for and `readonly` is read: a request for a writable view would refuse bytes (nanobind#206).
inline bool hold_buffer(PyObject* object, TensorObject* self) noexcept {
  if (PyObject_GetBuffer(object, &self->view, PyBUF_FULL_RO) != 0) return false;
  self->tensor.owner = Owner(&self->view, release_held_buffer);
  return true;
}

// True while self->tensor.owner is a held Py_buffer (self->view is valid): for the garbage collector.
inline bool holds_buffer(const TensorObject* self) noexcept {
  return self->tensor.owner.release_function() == release_held_buffer;
}

}  // namespace dlbridge::py
