// A callable Python object over a native state: what the base types of kernels are made of.
#pragma once

#include "protocols/common/python.h"

#include <structmember.h>

#include <cstring>
#include <new>

namespace dlbridge::py::nd {

template <class State>
struct LauncherObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  State* state;  // owned
};

// `call` is the vectorcall function of every object; __new__ takes any arguments, for the Python subclass.
template <class State, vectorcallfunc call>
class LauncherType {
 public:
  using Object = LauncherObject<State>;

  // Borrowed, immortal; also in the module, by the last part of `name`. Null with a Python error set.
  static PyTypeObject* add_to(PyObject* module, const char* name, const char* doc) {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Object, vectorcall), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>(doc)},
        {Py_tp_new, reinterpret_cast<void*>(create)},
        {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
        {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
        {Py_tp_members, members},
        {0, nullptr},
    };
    PyType_Spec spec = {name, sizeof(Object), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (type == nullptr || PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, type) != 0) return nullptr;
    return reinterpret_cast<PyTypeObject*>(type);
  }

 private:
  static PyObject* create(PyTypeObject* type, PyObject*, PyObject*) noexcept {
    PyObject* self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    auto* object = reinterpret_cast<Object*>(self);
    object->vectorcall = call;
    object->state = new (std::nothrow) State;
    if (object->state != nullptr) return self;
    Py_DECREF(self);
    return PyErr_NoMemory();
  }

  static void destroy(PyObject* self) noexcept {
    PyTypeObject* type = Py_TYPE(self);
    delete reinterpret_cast<Object*>(self)->state;
    type->tp_free(self);
    Py_DECREF(type);
  }
};

}  // namespace dlbridge::py::nd
