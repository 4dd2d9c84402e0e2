// The CUDA Array Interface, versions 2 and 3, both ways.
#pragma once

#include "protocols/common/tensor_object.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::cuda_array_interface {

using dlpack::Read;

// The dictionary is diagnosed before the driver is touched; an array of size zero needs no driver at all.
Read read(PyObject* object, py::TensorObject* self);

// CudaTensor.__cuda_array_interface__: version 3 with `stream`, or 2 without (the environment switch).
PyObject* tensor_cuda_array_interface(PyObject* self, void*) noexcept;

}  // namespace dlbridge::cuda_array_interface
