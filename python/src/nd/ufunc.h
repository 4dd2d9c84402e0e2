// Elementwise operations as Python calls them: from operators and as function objects.
#pragma once

#include "python/src/nd/array_object.h"

namespace dlbridge::py::nd {

// NotImplemented where an operand is nobody of ours; in-place where `out` is an array.
PyObject* call_operator(core::Op op, PyObject* a, PyObject* b, PyObject* out = nullptr) noexcept;
PyObject* call_operator(core::Op op, PyObject* a) noexcept;

}  // namespace dlbridge::py::nd
