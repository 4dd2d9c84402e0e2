// Arrays of Python's values: nested lists, tuples and ranges of numbers or of arrays. With the GIL; null or false with
// an error set, or PythonError.
#pragma once

#include <optional>

#include "python/src/nd/call.h"

namespace dlbridge::py::nd {

bool is_sequence(PyObject* object);

// The first element at the bottom says whether a sequence holds arrays.
bool holds_array(PyObject* object);

// A sequence with arrays in it. Where it holds nothing else, and they lie where the result is to lie, they are stacked
// here; Python code does what is left.
PyObject* from_arrays(PyObject* object, std::optional<DType> dtype, std::optional<DLDevice> device);

// Of nested sequences of numbers, or of one number.
PyObject* from_values(PyObject* object, std::optional<DType> dtype, DLDevice device);

}  // namespace dlbridge::py::nd
