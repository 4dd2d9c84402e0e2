// result_type() and can_cast().
#include "ndarray/core/promotion.h"

#include <vector>

#include "python/src/bridge.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

constexpr char kResultType[] =
    "result_type($module, /, *arrays_and_dtypes)\n--\n\nThe dtype that they promote to (NEP 50).";
PyObject* result_type(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs == 0) throw_error(PyExc_ValueError, "result_type() needs at least one array or dtype");
  std::vector<core::Input> inputs(static_cast<std::size_t>(nargs));
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (PyFloat_Check(args[k]) || PyLong_Check(args[k]) || PyComplex_Check(args[k]) || is_array(args[k])) {
      checked(parse_operand(args[k], inputs[k]) == Parsed::kYes);
      continue;
    }
    inputs[k].scalar.strong = true;
    inputs[k].scalar.dtype = parse_dtype(args[k], "result_type()").value_or(core::kDefaultFloat);
  }
  return make_dtype(to_dl(core::result_type(inputs)));
}

constexpr char kCanCast[] = "can_cast($module, from_, to, casting='safe')\n--\n\nWhether a cast is allowed.";
PyObject* can_cast(PyObject*, const Call& a) {
  const std::optional<DType> from =
      is_array(a.given(0)) ? std::optional(core::dtype_of(tensor_of(a.given(0)))) : a.dtype(0);
  const std::optional<DType> to = a.dtype(1);
  const core::Casting casting = a.casting(2, core::Casting::kSafe);
  return PyBool_FromLong(core::can_cast(from.value_or(core::kDefaultFloat), to.value_or(core::kDefaultFloat), casting));
}

}  // namespace

void init_promotion(PyObject* module) {
  add_functions(module, {method<kResultType, result_type>(), method<kCanCast, can_cast>()});
}

}  // namespace dlbridge::py::nd
