// The native half of dlbridge.nd: the parts that its module and its array types are put together from.
#pragma once

#include <vector>

#include "python/src/nd/array.h"

namespace dlbridge::py::nd {

// The module object with everything that dlbridge/nd/_native.py re-exports; the same one at every call.
PyObject* load_nd(PyObject* module);

// Of nd.ndarray, one a file.
std::vector<PyType_Slot> number_slots();                                    // operators.cpp
std::vector<PyType_Slot> subscript_slots();                                 // indexing.cpp
std::vector<PyMethodDef> array_methods();                                   // array_methods.cpp
std::vector<PyMethodDef> reduction_methods();                               // reductions.cpp
std::vector<PyGetSetDef> part_attributes();                                 // views.cpp
PyObject* new_array(PyTypeObject* type, PyObject* args, PyObject* kwargs);  // creation.cpp
PyObject* make_data_attribute(PyObject* array);                             // creation.cpp
PyObject* stack_arrays(PyObject* const* arrays, Py_ssize_t count);          // views.cpp; along a new first axis

// Registration, one a file. They throw with a Python error set.
void init_array_types(PyObject* module);
void init_ufuncs(PyObject* module);
void init_matmul(PyObject* module);  // operators.cpp
void init_linalg(PyObject* module);
void init_reductions(PyObject* module);
void init_indexing(PyObject* module);
void init_views(PyObject* module);
void init_rearrange(PyObject* module);
void init_positions(PyObject* module);
void init_float_parts(PyObject* module);
void init_bits(PyObject* module);
void init_promotion(PyObject* module);
void init_creation(PyObject* module);
void init_filled(PyObject* module);
void init_late(PyObject* module);
void init_operands(PyObject* module);
void init_fills(PyObject* module);
void init_flat(PyObject* module);
void init_numpys(PyObject* module);
void init_bit_stream(PyObject* module);

}  // namespace dlbridge::py::nd
