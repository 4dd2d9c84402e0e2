// Dtypes in any spelling, result_type() and its kin, and what arrays are asked of theirs.
#include "ndarray/core/promotion.h"

#include <vector>

#include "python/src/bridge.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

// In any spelling; None is none.
DType need_dtype(PyObject* object, const char* operation) {
  static PythonFunction refuse("dlbridge.nd._dtypes", "resolve_other");
  if (object == Py_None) refuse(object);
  return *parse_dtype(object, operation);
}

// A number, an array of ours, a dtype in any spelling, or what has one.
core::Input operand_of(PyObject* object, const char* operation) {
  core::Input input;
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object) || is_array(object)) {
    checked(parse_operand(object, input) == Parsed::kYes);
    return input;
  }
  DLDataType own;
  const bool is_name = PyUnicode_Check(object) || PyType_Check(object) || read_dtype(object, own);
  static constinit InternedName dtype("dtype");
  const Ref found = is_name ? Ref() : optional_attribute(object, checked(dtype.get()));
  checked(found || PyErr_Occurred() == nullptr);
  input.scalar.strong = true;
  input.scalar.dtype = need_dtype(found ? found.get() : object, operation);
  return input;
}

constexpr char kResolve[] = "resolve($module, obj, /)\n--\n\n"
                            "The DType that `obj` names, in any spelling. TypeError for anything else, and for dtypes "
                            "that the ndarray does not have.";
PyObject* resolve(PyObject*, PyObject* object) { return make_dtype(to_dl(need_dtype(object, "resolve()"))); }

constexpr char kKindOf[] = "kind_of($module, obj, /)\n--\n\n"
                           "NumPy's one-letter kind of a dtype: \"b\", \"i\", \"u\", \"f\" or \"c\".";
PyObject* kind_of(PyObject*, PyObject* object) {
  const DType dtype = need_dtype(object, "kind_of()");
  const char kind = core::is_bool(dtype)       ? 'b'
                    : core::is_complex(dtype)  ? 'c'
                    : core::is_float(dtype)    ? 'f'
                    : core::is_unsigned(dtype) ? 'u'
                                               : 'i';
  return PyUnicode_FromStringAndSize(&kind, 1);
}

constexpr char kResultType[] =
    "result_type($module, /, *arrays_and_dtypes)\n--\n\n"
    "The dtype that operands of these dtypes (arrays, dtypes, Python scalars) are promoted to, as NumPy 2 does.\n\n"
    "ValueError for no argument, TypeError where there is no common dtype. Source: Array API 2024.12, NEP 50.";
PyObject* result_type(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs == 0) throw_error(PyExc_ValueError, "result_type(): no argument; give at least one array, dtype or scalar");
  std::vector<core::Input> inputs;
  inputs.reserve(static_cast<std::size_t>(nargs));
  for (Py_ssize_t k = 0; k < nargs; ++k) inputs.push_back(operand_of(args[k], "result_type()"));
  return make_dtype(to_dl(core::result_type(inputs)));
}

constexpr char kPromoteTypes[] = "promote_types($module, type1, type2)\n--\n\n"
                                 "The smallest dtype that both dtypes can be cast to safely; NumPy's rules.";
PyObject* promote_types(PyObject*, const Call& a) {
  const DType first = need_dtype(a.given(0), a.operation()), second = need_dtype(a.given(1), a.operation());
  return make_dtype(to_dl(core::promote(first, second)));
}

constexpr char kCanCast[] =
    "can_cast($module, from_, to, casting='safe')\n--\n\n"
    "Whether a dtype or array can be cast to the dtype `to`; `casting`: \"no\", \"equiv\", \"safe\", \"same_kind\", "
    "\"unsafe\".\n\n"
    "ValueError for another `casting`, TypeError for anything that is not a dtype. Source: Array API 2024.12, NumPy.";
PyObject* can_cast(PyObject*, const Call& a) {
  PyObject* given = a.given(0);
  const DType from = is_array(given) ? core::dtype_of(tensor_of(given)) : need_dtype(given, a.operation());
  const core::Casting casting = a.casting(2, core::Casting::kSafe);
  return PyBool_FromLong(core::can_cast(from, need_dtype(a.given(1), a.operation()), casting));
}

// Of an array, or of what becomes one.
bool is_of_complex(PyObject* x) {
  static PythonFunction as_array("dlbridge.nd._arguments", "as_array");
  return core::is_complex(core::dtype_of(is_array(x) ? tensor_of(x) : tensor_of(as_array(x).get())));
}

constexpr char kIsComplexObj[] = "iscomplexobj($module, x)\n--\n\nWhether the dtype is complex.";
PyObject* is_complex_obj(PyObject*, const Call& a) { return PyBool_FromLong(is_of_complex(a.given(0))); }

constexpr char kIsRealObj[] = "isrealobj($module, x)\n--\n\nWhether the dtype is not complex.";
PyObject* is_real_obj(PyObject*, const Call& a) { return PyBool_FromLong(!is_of_complex(a.given(0))); }

}  // namespace

void init_promotion(PyObject* module) {
  add_functions(module, {method<kResolve, resolve>(), method<kKindOf, kind_of>(), method<kResultType, result_type>(),
                         method<kPromoteTypes, promote_types>(), method<kCanCast, can_cast>(),
                         method<kIsComplexObj, is_complex_obj>(), method<kIsRealObj, is_real_obj>()});
}

}  // namespace dlbridge::py::nd
