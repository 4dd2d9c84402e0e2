// nd.add, nd.exp, …: one vectorcall object a row of the operations' table, which its docstring is written from.
#include "python/src/nd/ufuncs.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "ndarray/core/named_ops.h"
#include "protocols/common/threads.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

struct UfuncObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const core::NamedOp* function;
  const char* name;
  char operation[32];  // "add()"
};
PyTypeObject* ufunc_type;

const UfuncObject* as_ufunc(PyObject* object) noexcept { return reinterpret_cast<const UfuncObject*>(object); }
int operands_of(const UfuncObject* self) noexcept { return core::info(self->function->op).operands; }

constexpr char kOptions[] = "ufunc(*, out=None, dtype=None, casting='same_kind', where=True)";

// An operand that is not one of ours but takes part by NumPy's protocol (a tracer of nd.fuse): it is asked.
PyObject* ask_operand(PyObject* self, PyObject* operand, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static constinit InternedName name("__array_ufunc__");
  const Ref method = optional_attribute(operand, checked(name.get()));
  checked(method || PyErr_Occurred() == nullptr);
  if (!method || method.get() == Py_None)
    throw_error(PyExc_TypeError,
                "%s(): Unsupported type %R; give nd arrays or Python scalars. nd.asarray(x) takes "
                "the arrays of other frameworks",
                as_ufunc(self)->name, Py_TYPE(operand));
  const Ref full = owned(PyTuple_New(nargs + 2));
  PyTuple_SET_ITEM(full.get(), 0, Ref::borrow(self).release());
  PyTuple_SET_ITEM(full.get(), 1, checked(PyUnicode_FromString("__call__")));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(full.get(), i + 2, Ref::borrow(args[i]).release());
  const Ref keywords(kwnames == nullptr ? nullptr : checked(PyDict_New()));
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    checked(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]));
  return PyObject_Call(method.get(), full.get(), keywords.get());
}

// Scalars alone: the result is an array of no axes on the default device. A NumPy scalar becomes one where there is
// one: the others take its dtype.
void give_array(std::span<core::Input> inputs, const char* name, Tensor& made) {
  auto found = std::ranges::find_if(inputs, [](const core::Input& i) { return i.scalar.strong; });
  core::Input& input = found != inputs.end() ? *found : inputs.back();
  const DType dtype = input.scalar.strong ? input.scalar.dtype : core::default_dtype(input.scalar.kind);
  throw_if_bad(core::make_array(made, dtype, {}, default_device()), name);
  throw_if_bad(core::assign(made, input, name), name);
  input.array = &made;
}

// The result in an array of its own, or in `out` where that is one. New reference.
[[gnu::always_inline]] inline PyObject* run(core::Op op, const char* name, std::span<const core::Input> operands,
                                            const core::ElementwiseOptions& options, PyObject* out) {
  if (out == nullptr)
    return make_result(name, [&](Tensor& made) { return core::elementwise(op, operands, options, made); });
  Tensor unused;
  const CriticalSection of_target(out);
  throw_if_bad(core::elementwise(op, operands, options, unused), name);
  return Ref::borrow(out).release();
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  static constexpr Signature kSignature(kOptions);
  const UfuncObject* self = as_ufunc(object);
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  const int operands = operands_of(self);
  if (nargs != operands && nargs != operands + 1)
    throw_error(PyExc_TypeError, "%s() takes %d operands (and out), got %zd arguments", self->name, operands, nargs);
  core::ElementwiseOptions options;
  options.name = self->name;
  PyObject* out = nargs > operands && args[operands] != Py_None ? args[operands] : nullptr;
  PyObject *dtype_object = nullptr, *casting = nullptr;
  if (kwnames != nullptr) {
    const Call keywords(kSignature, self->operation, args + nargs, 0, kwnames);
    if (keywords.given(3) != nullptr && keywords.given(3) != Py_True)
      throw_error(PyExc_TypeError, "%s got an unexpected keyword argument 'where'; it takes out, dtype and casting",
                  self->operation);
    if (nargs == operands) out = keywords[0];
    dtype_object = keywords[1];
    casting = keywords.given(2);
  }
  core::Input inputs[core::kMaxOperands];
  bool any_array = out != nullptr;
  for (int k = 0; k < operands; ++k) {
    core::Input& input = inputs[self->function->swapped ? operands - 1 - k : k];
    const Parsed parsed = parse_operand(args[k], input);
    if (parsed == Parsed::kNo) return ask_operand(object, args[k], args, nargs, kwnames);
    checked(parsed != Parsed::kError);
    any_array |= input.array != nullptr;
  }
  if (out != nullptr && PyTuple_Check(out) && PyTuple_GET_SIZE(out) == 1) out = PyTuple_GET_ITEM(out, 0);
  if (out != nullptr) options.out = &need_array(out, self->name);
  const std::optional<DType> dtype = parse_dtype(dtype_object, self->name);
  if (dtype) options.dtype = &*dtype;
  options.casting = parse_casting(casting, self->name, options.casting);
  Tensor made;
  if (!any_array) give_array({inputs, static_cast<std::size_t>(operands)}, self->name, made);
  return run(self->function->op, self->name, {inputs, static_cast<std::size_t>(operands)}, options, out);
}

PyObject* ufunc_repr(PyObject* self) { return PyUnicode_FromFormat("<dlbridge.nd.ufunc '%s'>", as_ufunc(self)->name); }
PyObject* get_name(PyObject* self) { return PyUnicode_FromString(as_ufunc(self)->name); }
PyObject* get_nin(PyObject* self) { return PyLong_FromLong(operands_of(as_ufunc(self))); }
PyObject* get_nout(PyObject*) { return PyLong_FromLong(1); }

PyObject* names_of(core::DTypeSet dtypes) {
  Ref list = owned(PyList_New(0));
  for (const DTypeInfo& row : kDTypes) {
    if (!core::is_supported(row.id) || !core::contains(dtypes, row.id)) continue;
    const Ref name = owned(PyUnicode_FromStringAndSize(row.name.data(), static_cast<Py_ssize_t>(row.name.size())));
    checked(PyList_Append(list.get(), name.get()));
  }
  return list.release();
}

PyObject* get_types(PyObject* self) { return names_of(core::info(as_ufunc(self)->function->op).dtypes); }

PyObject* get_fused_types(PyObject* self) {
  const core::OpInfo& row = core::info(as_ufunc(self)->function->op);
  return names_of(row.fusion == core::Fusion::kFused ? row.dtypes : row.dtypes & ~core::kComplexSet);
}

constexpr char kFunctor[] =
    "_functor($self, dtype, /)\n--\n\n"
    "(functor, dtype that it computes in, whether its operands are exchanged): for kernels of nd.fuse.";
PyObject* functor(PyObject* self, PyObject* dtype) {
  const UfuncObject* ufunc = as_ufunc(self);
  const core::NamedFunctor found = core::functor_of(ufunc->function->op, *parse_dtype(dtype, ufunc->operation));
  if (found.name == nullptr)
    throw_issue(ufunc->operation, ErrorCode::kWrongType, "no kernel computes it in this dtype. Convert the operands");
  return Py_BuildValue("(ssO)", found.name, info(found.compute).name.data(),
                       ufunc->function->swapped ? Py_True : Py_False);
}

PyObject* get_doc(PyObject* self) {
  const std::string doc = core::docstring_of(*as_ufunc(self)->function);
  return PyUnicode_FromStringAndSize(doc.data(), static_cast<Py_ssize_t>(doc.size()));
}

void ufunc_dealloc(PyObject* self) noexcept {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

void add_ufunc(PyObject* module, const core::NamedOp& function) {
  const Ref owner = owned(reinterpret_cast<PyObject*>(PyObject_New(UfuncObject, ufunc_type)));
  auto* self = reinterpret_cast<UfuncObject*>(owner.get());
  self->vectorcall = Guard<call>::call;
  self->function = &function;
  self->name = function.name;
  std::snprintf(self->operation, sizeof self->operation, "%s()", function.name);
  checked(PyModule_AddObjectRef(module, function.name, owner.get()));
  for (const core::OpAlias& alias : core::kOpAliases)
    if (!function.swapped && alias.op == function.op) checked(PyModule_AddObjectRef(module, alias.name, owner.get()));
}

}  // namespace

PyObject* call_operator(core::Op op, PyObject* a, PyObject* b, PyObject* out) {
  core::Input inputs[2];
  PyObject* const objects[2] = {a, b};
  for (int k = 0; k < 2; ++k) {
    const Parsed parsed = parse_operand(objects[k], inputs[k]);
    if (parsed == Parsed::kNo) Py_RETURN_NOTIMPLEMENTED;
    checked(parsed != Parsed::kError);
  }
  core::ElementwiseOptions options;
  if (out != nullptr) options.out = &tensor_of(out);
  return run(op, core::info(op).name.data(), inputs, options, out);
}

PyObject* call_operator(core::Op op, PyObject* a) {
  const core::Input input{&tensor_of(a), {}};
  return run(op, core::info(op).name.data(), {&input, 1}, {}, nullptr);
}

void init_ufuncs(PyObject* module) {
  ufunc_type = add_type(
      module, "dlbridge.nd.ufunc", sizeof(UfuncObject),
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,  // Python adds attributes
      {slot<PyVectorcall_Call>(Py_tp_call), slot<ufunc_repr>(Py_tp_repr),
       getters_slot(
           {getter<get_name>("__name__"), getter<get_name>("__qualname__"), getter<get_doc>("__doc__"),
            getter<get_nin>("nin", "int: the number of operands."),
            getter<get_nout>("nout", "int: the number of results, 1."),
            getter<get_types>("types", "list of str: the dtypes it computes in."),
            getter<get_fused_types>("_fused_types", "list of str: those that kernels of nd.fuse compute it in.")}),
       methods_slot({method<kFunctor, functor>()}), slot(Py_tp_members, kVectorcallMembers<UfuncObject>),
       slot<ufunc_dealloc>(Py_tp_dealloc)});
  for (const core::NamedOp& function : core::kNamedOps) add_ufunc(module, function);
}

}  // namespace dlbridge::py::nd
