// A callable Python object over a native state: what the base types of kernels are made of.
#pragma once

#include <memory>

#include "python/src/kit/tables.h"

namespace dlbridge::py::nd {

template <class State>
struct LauncherObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  State* state;  // owned
};

// `call` is the vectorcall function of every object; __new__ takes any arguments, for the Python subclass.
template <class State, vectorcallfunc call>
class LauncherType {
 public:
  using Object = LauncherObject<State>;

  static PyTypeObject* add_to(PyObject* module, const char* name, const char* doc) {
    return add_type(module, name, sizeof(Object), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
                    {doc_slot(doc), slot<create>(Py_tp_new), slot<destroy>(Py_tp_dealloc),
                     slot<PyVectorcall_Call>(Py_tp_call), slot(Py_tp_members, kVectorcallMembers<Object>)});
  }

 private:
  static PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
    auto state = std::make_unique<State>();
    auto* object = reinterpret_cast<Object*>(checked(type->tp_alloc(type, 0)));
    object->vectorcall = call;
    object->state = state.release();
    return reinterpret_cast<PyObject*>(object);
  }

  static void destroy(PyObject* self) noexcept {
    PyTypeObject* type = Py_TYPE(self);
    delete reinterpret_cast<Object*>(self)->state;
    type->tp_free(self);
    Py_DECREF(type);
  }
};

}  // namespace dlbridge::py::nd
