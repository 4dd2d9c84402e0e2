// Elementwise operations as Python calls them: from operators and as function objects.
#pragma once

#include "python/src/nd/array.h"

namespace dlbridge::py::nd {

// They throw with a Python error set. NotImplemented where an operand is not one of ours; in-place where `out` is an
// array.
PyObject* call_operator(core::Op op, PyObject* a, PyObject* b, PyObject* out = nullptr);
PyObject* call_operator(core::Op op, PyObject* a);

}  // namespace dlbridge::py::nd
