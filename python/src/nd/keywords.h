// Arguments of METH_FASTCALL | METH_KEYWORDS functions by a table of names: positional, then by keyword.
#pragma once

#include <cstddef>

#include "protocols/common/errors.h"
#include "protocols/common/python.h"

namespace dlbridge::py::nd {

// Fills values[i] (null: not given) for each of `count` names; the first `required` must be there, the first
// `positional` may be positional. False with a TypeError set.
inline bool parse_arguments(const char* function, const char* const* names, int count, int required, int positional,
                            PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** values) {
  if (nargs > positional) {
    PyErr_Format(PyExc_TypeError, "%s takes at most %d positional arguments, got %zd", function, positional, nargs);
    return false;
  }
  for (int i = 0; i < count; ++i) values[i] = i < nargs ? args[i] : nullptr;
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int i = 0;
    while (i < count && PyUnicode_CompareWithASCIIString(name, names[i]) != 0) ++i;
    if (i == count) {
      PyErr_Format(PyExc_TypeError, "%s got an unexpected keyword argument '%U'", function, name);
      return false;
    }
    if (values[i] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s got multiple values for argument '%s'", function, names[i]);
      return false;
    }
    values[i] = args[nargs + k];
  }
  for (int i = 0; i < required; ++i)
    if (values[i] == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s missing required argument '%s'", function, names[i]);
      return false;
    }
  return true;
}

// The same with the names as a braced list: parse<2>("f()", {"x", "axis"}, 1, …).
template <std::size_t kCount>
struct Arguments {
  PyObject* values[kCount];
  bool parse(const char* function, const char* const (&names)[kCount], int required, int positional,
             PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return parse_arguments(function, names, static_cast<int>(kCount), required, positional, args, nargs, kwnames, values);
  }
  PyObject* operator[](std::size_t i) const noexcept { return values[i] == Py_None ? nullptr : values[i]; }
};

// None and absent are `otherwise`. False with a Python error set.
inline bool parse_flag(PyObject* object, bool otherwise, bool& out) {
  if (object == nullptr) {
    out = otherwise;
    return true;
  }
  const int truth = PyObject_IsTrue(object);
  out = truth > 0;
  return truth >= 0;
}

template <class Function>
PyCFunction as_c_function(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// A C slot around code that may throw std::bad_alloc: catch (...) in one place.
template <PyObject* (*kFunction)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
PyObject* guarded(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  try {
    return kFunction(self, args, nargs, kwnames);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

}  // namespace dlbridge::py::nd
