// Floats taken apart, put together and compared in one pass, some on the host alone: see host_only.h.
#include "ndarray/core/float_parts.h"

#include "ndarray/core/dense.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

PyObject* pair_or_none(Tensor (&parts)[2], bool done) {
  return done ? tuple_of(parts) : Ref::borrow(Py_None).release();
}

template <Status (*split)(const Tensor&, Tensor (&)[2], bool&)>
PyObject* split_floats(PyObject*, const Call& a) {
  Tensor parts[2];
  bool done = false;
  if (is_array(a.given(0))) throw_if_bad(split(tensor_of(a.given(0)), parts, done), a.operation());
  return pair_or_none(parts, done);
}

constexpr char kFrexp[] = "frexp()";
constexpr char kFrexpOfFloats[] = "frexp_of_floats($module, x)\n--\n\nfrexp() of an array of floats; None for others.";
constexpr char kModf[] = "modf()";
constexpr char kModfOfFloats[] = "modf_of_floats($module, x)\n--\n\nmodf() of an array of floats; None for others.";

constexpr char kIsclose[] = "isclose()";
constexpr char kIscloseOfFloats[] =
    "isclose_of_floats($module, x, y, rtol, atol, equal_nan)\n--\n\n"
    "isclose() of arrays of floats or complex numbers of one dtype, by Python's numbers; None for others.";
PyObject* isclose_of_floats(PyObject*, const Call& a) {
  double tolerances[2];
  for (std::size_t k = 0; k < 2; ++k) {
    std::int64_t whole = 0;
    PyObject* const given = a.given(k + 2);
    if (PyFloat_CheckExact(given)) tolerances[k] = PyFloat_AS_DOUBLE(given);
    else if (parse_integer(given, whole)) tolerances[k] = static_cast<double>(whole);
    else Py_RETURN_NONE;
  }
  if (!is_array(a.given(0)) || !is_array(a.given(1))) Py_RETURN_NONE;
  const bool equal_nan = a.flag(4, false);
  const Tensor &x = tensor_of(a.given(0)), &y = tensor_of(a.given(1));
  return made_or_none(a, [&](Tensor& out, bool& done) {
    return core::is_close(x, y, tolerances[0], tolerances[1], equal_nan, out, done);
  });
}

constexpr char kLdexp[] = "ldexp()";
constexpr char kLdexpOnHost[] =
    "ldexp_on_host($module, x, exponents)\n--\n\n"
    "ldexp() of integers, float16, float32 or float64, dense or on one axis, and integers of its shape; None for "
    "others.";
PyObject* ldexp_on_host(PyObject*, const Call& a) {
  const Tensor *x = host_array(a.given(0)), *exponents = host_array(a.given(1));
  if (x == nullptr || exponents == nullptr) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::scale_by_powers(*x, *exponents, out, done); });
}

constexpr char kSpacing[] = "spacing()";
constexpr char kSpacingOnHost[] =
    "spacing_on_host($module, x)\n--\n\nspacing() of integers, float16, float32 or float64 "
    "of the host, dense or on one axis; None for others.";
PyObject* spacing_on_host(PyObject*, const Call& a) {
  const Tensor* x = host_array(a.given(0));
  if (x == nullptr) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::find_spacings(*x, out, done); });
}

constexpr char kNanToNum[] = "nan_to_num()";
constexpr char kNanToNumOnHost[] = "nan_to_num_on_host($module, x, nan, high, low)\n--\n\n"
                                   "Writes numbers in place of NaN and the infinities of a dense array of the host, "
                                   "done where it says True.";
PyObject* nan_to_num_on_host(PyObject*, const Call& a) {
  const Tensor* x = host_array(a.given(0));
  bool done = false;
  std::optional<double> numbers[3];
  for (std::size_t k = 0; k < 3; ++k) {
    PyObject* given = a[k + 1];
    if (given == nullptr) continue;
    if (!PyFloat_CheckExact(given) && !PyLong_CheckExact(given)) Py_RETURN_FALSE;
    numbers[k] = a.number(k + 1, 0);
  }
  if (x == nullptr || !numbers[0]) Py_RETURN_FALSE;
  const CriticalSection of_target(a.given(0));
  throw_if_bad(core::replace_specials(*x, *numbers[0], numbers[1], numbers[2], done), a.operation());
  return PyBool_FromLong(done ? 1 : 0);
}

}  // namespace

void init_float_parts(PyObject* module) {
  add_functions(
      module,
      {method<kFrexpOfFloats, split_floats<core::split_exponents>, kFrexp>(),
       method<kModfOfFloats, split_floats<core::split_wholes>, kModf>(),
       method<kIscloseOfFloats, isclose_of_floats, kIsclose>(), method<kLdexpOnHost, ldexp_on_host, kLdexp>(),
       method<kSpacingOnHost, spacing_on_host, kSpacing>(), method<kNanToNumOnHost, nan_to_num_on_host, kNanToNum>()});
}

}  // namespace dlbridge::py::nd
