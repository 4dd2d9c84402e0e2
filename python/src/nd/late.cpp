// _native.late: a function of Python's half that is imported when it is first called, at the cost of a call of C.
#include <cstddef>

#include "protocols/common/threads.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

// As a member of a type it is a method.
struct LateFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* attributes;  // __name__, __doc__, …, as functions have them
  PyObject* module;      // its name, and that of the function there
  PyObject* name;
  Atomic<PyObject*> function;
};
PyTypeObject* late_type;

LateFunction* as_late(PyObject* object) noexcept { return reinterpret_cast<LateFunction*>(object); }

PyObject* found(PyObject* object) {  // borrowed
  LateFunction* self = as_late(object);
  return checked(find_once(self->function, [self]() -> PyObject* {
    const Ref module(PyImport_Import(self->module));
    return module ? PyObject_GetAttr(module.get(), self->name) : nullptr;
  }));
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  return PyObject_Vectorcall(found(self), args, nargsf, kwnames);
}

void dealloc(PyObject* object) noexcept {  // at the end of the interpreter, with the module that has it
  PyTypeObject* type = Py_TYPE(object);
  const LateFunction* self = as_late(object);
  for (PyObject* part : {self->attributes, self->module, self->name, self->function.load()}) Py_XDECREF(part);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* get_signature(PyObject* self) {
  static PythonFunction signature("inspect", "signature");
  return signature(found(self)).release();
}

PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance == nullptr || instance == Py_None ? Ref::borrow(self).release() : PyMethod_New(self, instance);
}

constexpr char kLate[] = "late($module, module, name, /)\n--\n\n"
                         "The function of that name in that module of dlbridge.nd, imported when it is first called.";
PyObject* late(PyObject*, const Call& a) {
  Ref made = owned(PyType_GenericAlloc(late_type, 0));
  LateFunction* self = as_late(made.get());
  self->vectorcall = Guard<call>::call;
  self->attributes = checked(PyDict_New());
  self->module = checked(PyUnicode_FromFormat("dlbridge.nd.%U", a.given(0)));
  self->name = Ref::borrow(a.given(1)).release();
  return made.release();
}

}  // namespace

void init_late(PyObject* module) {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(LateFunction, vectorcall), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(LateFunction, attributes), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  late_type = add_type(module, "dlbridge.nd.late_function", sizeof(LateFunction),
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                           Py_TPFLAGS_DISALLOW_INSTANTIATION,
                       {slot<PyVectorcall_Call>(Py_tp_call), slot<bind>(Py_tp_descr_get), slot<dealloc>(Py_tp_dealloc),
                        slot(Py_tp_members, members), getters_slot({getter<get_signature>("__signature__")})});
  add_functions(module, {method<kLate, late>()});
}

}  // namespace dlbridge::py::nd
