// nd.add, nd.exp, …: one vectorcall object a row of the op table.
#include "python/src/nd/ufunc.h"

#include <structmember.h>

#include <string>

#include "python/src/bridge.h"
#include "python/src/nd/array_type.h"

namespace dlbridge::py::nd {

namespace {

struct UfuncObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  core::Op op;
  bool swapped;      // greater is less with the operands exchanged
  const char* name;
};
PyTypeObject* ufunc_type;

const UfuncObject* as_ufunc(PyObject* object) noexcept { return reinterpret_cast<const UfuncObject*>(object); }
int operands_of(const UfuncObject* self) noexcept { return core::info(self->op).operands; }

struct Keywords {
  PyObject* out = nullptr;
  PyObject* dtype = nullptr;
};

bool parse_keywords(const UfuncObject* self, PyObject* const* values, PyObject* names_tuple, Keywords& out) {
  const Py_ssize_t count = names_tuple == nullptr ? 0 : PyTuple_GET_SIZE(names_tuple);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names_tuple, i);
    if (PyUnicode_CompareWithASCIIString(name, "out") == 0) out.out = values[i] == Py_None ? nullptr : values[i];
    else if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0) out.dtype = values[i];
    else if (PyUnicode_CompareWithASCIIString(name, "where") == 0 && values[i] == Py_True) continue;
    else if (PyUnicode_CompareWithASCIIString(name, "casting") == 0) continue;  // results are cast by same_kind
    else {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'; it takes out and dtype", self->name,
                   name);
      return false;
    }
  }
  return true;
}

// An operand that is nobody of ours but takes part by NumPy's protocol (a tracer of nd.fuse): it is asked.
PyObject* ask_operand(PyObject* self, PyObject* operand, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  const Ref method(PyObject_GetAttrString(operand, "__array_ufunc__"));
  if (!method || method.get() == Py_None) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s(): Unsupported type %R; give nd arrays or Python scalars. nd.asarray(x) takes "
                                  "the arrays of other frameworks",
                 as_ufunc(self)->name, Py_TYPE(operand));
    return nullptr;
  }
  const Ref full(PyTuple_New(nargs + 2));
  if (!full) return nullptr;
  PyTuple_SET_ITEM(full.get(), 0, Ref::borrow(self).release());
  PyTuple_SET_ITEM(full.get(), 1, PyUnicode_FromString("__call__"));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(full.get(), i + 2, Ref::borrow(args[i]).release());
  const Ref keywords(kwnames == nullptr ? nullptr : PyDict_New());
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) != 0) return nullptr;
  return PyObject_Call(method.get(), full.get(), keywords.get());
}

// Scalars alone: the result is an array of no axes on the default device.
bool give_array(core::Input& input, const char* name, Tensor& made) {
  const DType dtype = input.scalar.strong ? input.scalar.dtype : core::default_dtype(input.scalar.kind);
  if (!succeeded(name, core::make_array(made, dtype, {}, default_device()))) return false;
  if (!succeeded(name, core::assign(made, input, name))) return false;
  input.array = &made;
  return true;
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) noexcept {
  try {
    const UfuncObject* self = as_ufunc(object);
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    const int operands = operands_of(self);
    if (nargs != operands && nargs != operands + 1) {
      PyErr_Format(PyExc_TypeError, "%s() takes %d operands (and out), got %zd arguments", self->name, operands, nargs);
      return nullptr;
    }
    Keywords keywords;
    if (kwnames != nullptr && !parse_keywords(self, args + nargs, kwnames, keywords)) return nullptr;
    if (nargs > operands) keywords.out = args[operands] == Py_None ? nullptr : args[operands];
    core::Input inputs[core::kMaxOperands];
    bool any_array = keywords.out != nullptr;
    for (int k = 0; k < operands; ++k) {
      core::Input& input = inputs[self->swapped ? operands - 1 - k : k];
      const Parsed parsed = parse_operand(args[k], input);
      if (parsed == Parsed::kNo) return ask_operand(object, args[k], args, nargs, kwnames);
      if (parsed == Parsed::kError) return nullptr;
      any_array |= input.array != nullptr;
    }
    if (keywords.out != nullptr && PyTuple_Check(keywords.out) && PyTuple_GET_SIZE(keywords.out) == 1)
      keywords.out = PyTuple_GET_ITEM(keywords.out, 0);
    core::ElementwiseOptions options;
    options.name = self->name;
    if (keywords.out != nullptr && !need_array(keywords.out, self->name, options.out)) return nullptr;
    std::optional<DType> dtype;
    if (!parse_dtype(keywords.dtype, self->name, dtype)) return nullptr;
    if (dtype) options.dtype = &*dtype;
    Tensor made;
    if (!any_array && !give_array(inputs[operands - 1], self->name, made)) return nullptr;
    if (options.out != nullptr) {
      Tensor unused;
      const Status status = core::elementwise(self->op, {inputs, static_cast<std::size_t>(operands)}, options, unused);
      return succeeded(self->name, status) ? Ref::borrow(keywords.out).release() : nullptr;
    }
    NewArray result;
    if (!result) return nullptr;
    return finish(self->name,
                  core::elementwise(self->op, {inputs, static_cast<std::size_t>(operands)}, options, result.tensor()),
                  result);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* ufunc_repr(PyObject* self) { return PyUnicode_FromFormat("<dlbridge.nd.ufunc '%s'>", as_ufunc(self)->name); }
PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(as_ufunc(self)->name); }
PyObject* get_nin(PyObject* self, void*) { return PyLong_FromLong(operands_of(as_ufunc(self))); }
PyObject* get_nout(PyObject*, void*) { return PyLong_FromLong(1); }

PyObject* get_types(PyObject* self, void*) {
  const Ref list(PyList_New(0));
  if (!list) return nullptr;
  for (const DTypeInfo& row : kDTypes) {
    if (!core::is_supported(row.id) || !core::contains(core::info(as_ufunc(self)->op).dtypes, row.id)) continue;
    const Ref name(PyUnicode_FromStringAndSize(row.name.data(), static_cast<Py_ssize_t>(row.name.size())));
    if (!name || PyList_Append(list.get(), name.get()) != 0) return nullptr;
  }
  return Ref::borrow(list.get()).release();
}

// inspect.signature() reads it.
PyObject* get_signature(PyObject* self, void*) {
  const int n = operands_of(as_ufunc(self));
  const char* operands = n == 1 ? "x" : n == 2 ? "x1, x2" : "x1, x2, x3";
  return PyUnicode_FromFormat("(%s, /, out=None, *, dtype=None)", operands);
}

PyObject* get_doc(PyObject* self, void*) {
  const UfuncObject* u = as_ufunc(self);
  return PyUnicode_FromFormat(
      "%s of arrays or scalars, element by element, with broadcasting and NumPy 2's type promotion.\n\n"
      "out: an array for the result. dtype: compute in this dtype.\n"
      "Raises TypeError for dtypes without a loop (.types lists those it has), ValueError for shapes that do not "
      "broadcast.", u->name);
}

PyGetSetDef ufunc_attributes[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__text_signature__", get_signature, nullptr, nullptr, nullptr},
    {"nin", get_nin, nullptr, "int: the number of operands.", nullptr},
    {"nout", get_nout, nullptr, "int: the number of results, 1.", nullptr},
    {"types", get_types, nullptr, "list of str: the dtypes it computes in.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef ufunc_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(UfuncObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

void ufunc_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

bool add_ufunc(PyObject* module, core::Op op, const char* name, bool swapped) {
  auto* self = PyObject_New(UfuncObject, ufunc_type);
  if (self == nullptr) return false;
  self->vectorcall = call;
  self->op = op;
  self->swapped = swapped;
  self->name = name;
  const Ref owner(reinterpret_cast<PyObject*>(self));
  return PyModule_AddObjectRef(module, name, owner.get()) == 0;
}

PyObject* run_operator(core::Op op, core::Input* inputs, int count, PyObject* out) {
  const char* name = core::info(op).name.data();
  const std::span operands(inputs, static_cast<std::size_t>(count));
  if (out != nullptr) {
    core::ElementwiseOptions options;
    options.out = &tensor_of(out);
    Tensor unused;
    return succeeded(name, core::elementwise(op, operands, options, unused)) ? Ref::borrow(out).release() : nullptr;
  }
  NewArray result;
  if (!result) return nullptr;
  return finish(name, core::elementwise(op, operands, {}, result.tensor()), result);
}

}  // namespace

PyObject* call_operator(core::Op op, PyObject* a, PyObject* b, PyObject* out) noexcept {
  try {
    core::Input inputs[2];
    PyObject* const objects[2] = {a, b};
    for (int k = 0; k < 2; ++k) {
      const Parsed parsed = parse_operand(objects[k], inputs[k]);
      if (parsed == Parsed::kNo) Py_RETURN_NOTIMPLEMENTED;
      if (parsed == Parsed::kError) return nullptr;
    }
    return run_operator(op, inputs, 2, out);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* call_operator(core::Op op, PyObject* a) noexcept {
  try {
    core::Input input{&tensor_of(a), {}};
    return run_operator(op, &input, 1, nullptr);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

bool init_ufuncs(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_call, slot_pointer(PyVectorcall_Call)}, {Py_tp_repr, slot_pointer(ufunc_repr)},
      {Py_tp_getset, ufunc_attributes},              {Py_tp_members, ufunc_members},
      {Py_tp_dealloc, slot_pointer(ufunc_dealloc)},  {0, nullptr},
  };
  PyType_Spec spec{"dlbridge.nd.ufunc", sizeof(UfuncObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,  // Python adds
                   slots};
  ufunc_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
  if (ufunc_type == nullptr || PyModule_AddObjectRef(module, "ufunc", reinterpret_cast<PyObject*>(ufunc_type)) != 0)
    return false;
  for (std::size_t k = 0; k < core::kOps.size(); ++k)
    if (!add_ufunc(module, static_cast<core::Op>(k), core::kOps[k].name.data(), false)) return false;
  return add_ufunc(module, core::Op::kLess, "greater", true) && add_ufunc(module, core::Op::kLessEqual, "greater_equal", true);
}

}  // namespace dlbridge::py::nd
