#pragma once

#include "protocols/common/python.h"

namespace dlbridge::py::nd {

// METH_NOARGS. The module object with everything that dlbridge/nd/_native.py re-exports; the same one at every call.
PyObject* load_nd(PyObject* module, PyObject*) noexcept;

}  // namespace dlbridge::py::nd
