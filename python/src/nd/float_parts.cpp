// Floats taken apart, put together and compared in one pass, some on the host alone: see host_only.h.
#include "ndarray/core/float_parts.h"

#include <optional>

#include "ndarray/core/dense.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

PyObject* pair_or_none(Tensor (&parts)[2], bool done) {
  return done ? tuple_of(parts) : Ref::borrow(Py_None).release();
}

// None for what is not a number of Python's.
std::optional<double> number_or_none(PyObject* given) {
  if (PyFloat_CheckExact(given)) return PyFloat_AS_DOUBLE(given);
  std::int64_t whole = 0;
  if (parse_integer(given, whole)) return static_cast<double>(whole);
  return std::nullopt;
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
constexpr char kIscloseAtOnce[] = "isclose_at_once($module, x, y, rtol, atol, equal_nan)\n--\n\n"
                                  "isclose() of arrays of floats or complex numbers of one dtype, by Python's numbers, "
                                  "on the host also of others but "
                                  "float16 and bfloat16; None for others.";
PyObject* isclose_at_once(PyObject*, const Call& a) {
  double tolerances[2];
  for (std::size_t k = 0; k < 2; ++k) {
    const std::optional<double> number = number_or_none(a.given(k + 2));
    if (!number) Py_RETURN_NONE;
    tolerances[k] = *number;
  }
  if (!is_array(a.given(0)) || !is_array(a.given(1))) Py_RETURN_NONE;
  const bool equal_nan = a.flag(4, false);
  const Tensor &x = tensor_of(a.given(0)), &y = tensor_of(a.given(1));
  return made_or_none(a, [&](Tensor& out, bool& done) {
    return core::is_close(x, y, tolerances[0], tolerances[1], equal_nan, out, done);
  });
}

constexpr char kLdexp[] = "ldexp()";
constexpr char kLdexpOfIntegers[] =
    "ldexp_of_integers($module, x, exponents)\n--\n\n"
    "ldexp() of floats, and of the host integers, with integers; on the host dense or on one axis, and of one shape. "
    "None for others.";
PyObject* ldexp_of_integers(PyObject*, const Call& a) {
  if (!is_array(a.given(0)) || !is_array(a.given(1))) Py_RETURN_NONE;
  const Tensor &x = tensor_of(a.given(0)), &exponents = tensor_of(a.given(1));
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::scale_by_powers(x, exponents, out, done); });
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
constexpr char kReplaceSpecials[] =
    "replace_specials($module, x, nan, high, low)\n--\n\n"
    "Numbers in place of NaN and the infinities in the parts of floats and complex numbers; None for other operands.";
PyObject* replace_specials(PyObject*, const Call& a) {
  const std::optional<double> nan = number_or_none(a.given(1)), high = number_or_none(a.given(2)),
                              low = number_or_none(a.given(3));
  if (!is_array(a.given(0)) || !nan || !high || !low) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) {
    return core::replace_specials(tensor_of(a.given(0)), *nan, *high, *low, out, done);
  });
}

constexpr char kReplaceNan[] = "replace_nan($module, x, number)\n--\n\n"
                               "A number in place of floats and complex numbers that are NaN; None for other operands.";
constexpr char kNanTo[] = "where(isnan(x), number, x)";
PyObject* replace_nan(PyObject*, const Call& a) {
  const std::optional<double> number = number_or_none(a.given(1));
  if (!is_array(a.given(0)) || !number) Py_RETURN_NONE;
  return made_or_none(
      a, [&](Tensor& out, bool& done) { return core::replace_nan(tensor_of(a.given(0)), *number, out, done); });
}

constexpr char kRound[] = "round()";
constexpr char kRoundAt[] = "round_at($module, x, scale, inverse)\n--\n\n"
                            "The parts of floats and complex numbers rounded to multiples of a scale, or of its "
                            "inverse; None for other operands.";
PyObject* round_at(PyObject*, const Call& a) {
  const std::optional<double> scale = number_or_none(a.given(1));
  if (!is_array(a.given(0)) || !scale) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) {
    return core::round_at(tensor_of(a.given(0)), *scale, a.flag(2, false), out, done);
  });
}

}  // namespace

void init_float_parts(PyObject* module) {
  add_functions(
      module,
      {method<kFrexpOfFloats, split_floats<core::split_exponents>, kFrexp>(),
       method<kModfOfFloats, split_floats<core::split_wholes>, kModf>(),
       method<kIscloseAtOnce, isclose_at_once, kIsclose>(), method<kLdexpOfIntegers, ldexp_of_integers, kLdexp>(),
       method<kSpacingOnHost, spacing_on_host, kSpacing>(), method<kReplaceSpecials, replace_specials, kNanToNum>(),
       method<kReplaceNan, replace_nan, kNanTo>(), method<kRoundAt, round_at, kRound>()});
}

}  // namespace dlbridge::py::nd
