// cupy.ndarray read from its C++ members.
//
// CuPy has no C exchange table. Its __dlpack__ costs microseconds, its Python attributes some hundred nanoseconds in
// all: both build Python objects that are taken apart again at once. The members themselves (the two vectors of
// extents and strides, the dtype, the pointer) are six loads. Where they lie is no interface, so nothing is assumed:
// sample arrays that differ in every member are made with CuPy's public constructors, on addresses that nobody reads,
// and the words that explain all of them are looked for. Only if exactly one layout does is it used; otherwise, and
// for every array that looks unusual, the ordinary readers do the work.
#pragma once

#include "protocols/cuda_array_interface/cuda_array_interface.h"

namespace dlbridge::cuda_array_interface {

// cupy.ndarray, once somebody has imported CuPy; nullptr before. Borrowed from its module.
PyTypeObject* cupy_array_type() noexcept;

// `object` is of exactly that type. kAbsent, with no Python error set: ask the ordinary readers. Never kFailed.
// The ordering token is CuPy's current stream of the array's device, as its __cuda_array_interface__ would name it.
Read read_cupy(PyObject* object, py::TensorObject* self);

}  // namespace dlbridge::cuda_array_interface
