// The pieces that the types of array_type.cpp are put together from.
#pragma once

#include "python/src/nd/array_object.h"

namespace dlbridge::py::nd {

inline constexpr int kMaxSlots = 96;

template <class Function>
void* slot_pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

extern PyType_Slot number_slots[];     // operators.cpp; ends with {0, nullptr}
extern PyType_Slot subscript_slots[];  // subscript.cpp
extern PyMethodDef array_methods[];    // methods.cpp
PyObject* new_array(PyTypeObject* type, PyObject* args, PyObject* kwargs) noexcept;  // creation.cpp
PyObject* make_data_attribute(PyObject* array) noexcept;                             // creation.cpp

// Registration, one a file. False with a Python error set.
bool init_ufuncs(PyObject* module);      // ufunc.cpp
bool init_functions(PyObject* module);   // functions.cpp
bool init_creation(PyObject* module);    // creation.cpp

}  // namespace dlbridge::py::nd
