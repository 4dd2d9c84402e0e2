// NumPy's array interface, both ways: the dictionary and the C struct.
#pragma once

#include "protocols/common/read.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::array_interface {

// --- reader.cpp: __array_interface__ (versions 2, 3 and later) ----------------------------------------------------
py::Read read_dict(PyObject* object, py::ReadCall& call, py::TensorObject* self);

// --- struct_reader.cpp: __array_struct__ --------------------------------------------------------------------------
py::Read read_struct(PyObject* object, py::ReadCall& call, py::TensorObject* self);

// --- exporter.cpp: HostTensor.__array_interface__, .__array_struct__ ------------------------------------------------
// New references; null, or they throw, with a Python error set.
PyObject* tensor_array_interface(PyObject* self);
PyObject* tensor_array_struct(PyObject* self);

}  // namespace dlbridge::array_interface
