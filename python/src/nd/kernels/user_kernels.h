// User kernels in Python: what dlbridge.nd._kernels builds RawKernel, RawModule, ElementwiseKernel, ReductionKernel and
// fuse() from.
#pragma once

#include <pybind11/pybind11.h>

namespace dlbridge::py::nd {

void init_user_kernels(pybind11::module_ m);

// The base types of RawKernel and of ElementwiseKernel.
void init_kernel_launcher(PyObject* module);
void init_elementwise_launcher(PyObject* module);
void init_kernel_keys(PyObject* module);  // functions for their tables

}  // namespace dlbridge::py::nd
