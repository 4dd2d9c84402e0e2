// The CUDA Array Interface, both ways: versions 0 to 3 and later are read, 2 and 3 are written.
#pragma once

#include "protocols/common/read.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::cuda_array_interface {

// The dictionary is diagnosed before the driver is touched; an array of size zero needs no driver at all.
py::Read read(PyObject* object, py::ReadCall& call, py::TensorObject* self);

// CudaTensor.__cuda_array_interface__: version 3 with `stream`, or 2 without (the environment switch).
// New reference; throws with a Python error set.
PyObject* tensor_cuda_array_interface(PyObject* self);

}  // namespace dlbridge::cuda_array_interface
