// Arrays filled by a rule: ranges and random counts.
#include "ndarray/core/fill.h"

#include <cmath>

#include "ndarray/core/elementwise.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

constexpr char kRangeFill[] =
    "range_fill($module, out, start, step, stop=None)\n--\n\n"
    "Fills a dense array with start + i * step; the last element is stop where that is given.";
PyObject* range_fill(PyObject*, const Call& a) {
  const Tensor& out = a.array(0);
  const core::Input start = a.operand(1), step = a.operand(2);
  const core::Input stop = a[3] != nullptr ? a.operand(3) : core::Input();
  throw_if_bad(core::fill_range(out, start.scalar, step.scalar, a[3] != nullptr ? &stop.scalar : nullptr),
               a.operation());
  Py_RETURN_NONE;
}

// Which of the names an argument is.
template <std::size_t n>
std::size_t place_of(PyObject* name, const char* const (&names)[n], const Call& a) {
  std::size_t place = 0;
  while (place < n && PyUnicode_CompareWithASCIIString(name, names[place]) != 0) ++place;
  if (place == n) throw_error(PyExc_ValueError, "%s: unknown kind %R", a.operation(), name);
  return place;
}

core::host_kernels::CountLaw law_of(const Call& a, std::size_t i) {
  static constexpr const char* kNames[] = {"poisson", "binomial", "hypergeometric"};  // in the order of CountLaw
  return static_cast<core::host_kernels::CountLaw>(place_of(a.given(i), kNames, a));
}

constexpr char kCountTable[] =
    "count_table($module, law, most, a, b=0.0, c=0.0)\n--\n\n"
    "The sums of the probabilities of a law of counts, on the host, and the count that the first is of; None for more "
    "than `most`.";
PyObject* count_table(PyObject*, const Call& a) {
  const double parameters[] = {a.number(2, 0.0), a.number(3, 0.0), a.number(4, 0.0)};
  const core::host_kernels::LogConcave law(law_of(a, 0), parameters);
  const std::int64_t most = checked_number(PyLong_AsLongLong(a.given(1)));
  std::optional<double> first;
  Ref sums(make_result(a.operation(), [&](Tensor& out) { return core::sum_probabilities(out, law, most, first); }));
  if (!first) Py_RETURN_NONE;
  return Py_BuildValue("(OL)", sums.get(), static_cast<long long>(*first));
}

// --- arange ----------------------------------------------------------------------------------------------------------

// A Python int or float, so small that doubles hold all that is computed with it exactly.
struct RangeNumber {
  bool integral = false;
  std::int64_t i = 0;
  double value = 0;
};

bool parse_range_number(PyObject* object, RangeNumber& out) {
  constexpr std::int64_t kMost = std::int64_t{1} << 51;
  out.integral = PyLong_CheckExact(object) != 0;
  if (!out.integral && !PyFloat_CheckExact(object)) return false;
  int past = 0;
  if (out.integral) out.i = checked_number(PyLong_AsLongLongAndOverflow(object, &past));
  out.value = out.integral ? static_cast<double>(out.i) : PyFloat_AS_DOUBLE(object);
  return past == 0 && out.i >= -kMost && out.i <= kMost;
}

// The number of values; -1: there is none that is plain to say.
std::int64_t range_length(const RangeNumber& start, const RangeNumber& stop, const RangeNumber& step, bool exact) {
  if (step.value == 0) return -1;
  if (exact) {
    const std::int64_t way = step.i > 0 ? stop.i - start.i : start.i - stop.i;
    return way > 0 ? (way - 1) / std::abs(step.i) + 1 : 0;
  }
  const double quotient = (stop.value - start.value) / step.value;
  if (!(std::abs(quotient) < 0x1p53)) return -1;  // NaN, too
  return quotient > 0 ? static_cast<std::int64_t>(std::ceil(quotient)) : 0;
}

constexpr char kArange[] = "arange($module, start, stop, step, dtype=None, device=None)\n--\n\n"
                           "A range of plain numbers; None for those that dlbridge/nd/_ranges.py is to look at.";
PyObject* arange(PyObject*, const Call& a) {
  RangeNumber start, stop, step;
  if (!parse_range_number(a.given(0), start) || !parse_range_number(a.given(1), stop) ||
      !parse_range_number(a.given(2), step))
    Py_RETURN_NONE;
  const bool integral = start.integral && stop.integral && step.integral;
  const DType natural = integral ? core::kDefaultInt : core::kDefaultFloat;
  const DType wanted = a.dtype(3).value_or(natural);
  const DType dtype = core::is_complex(wanted) ? natural : wanted;  // complex ones are real ones, cast
  const bool exact = core::is_integer(dtype);
  const std::int64_t n = (exact ? integral : core::is_float(dtype)) ? range_length(start, stop, step, exact) : -1;
  if (n < 0 || (exact && n > 0 && !core::fits(core::Scalar::of_int(start.i), dtype)) ||
      (exact && n > 1 && !core::fits(core::Scalar::of_int(start.i + step.i), dtype)))
    Py_RETURN_NONE;
  const std::optional<DLDevice> given = a.device(4);
  const DLDevice device = or_default(given);
  const auto number = [&](const RangeNumber& x) {
    return exact ? core::Scalar::of_int(x.i) : core::Scalar::of_float(x.value);
  };
  const auto fill = [&](Tensor& out) -> Status {
    DLBRIDGE_TRY(core::make_array(out, dtype, {&n, 1}, device));
    return core::fill_range(out, number(start), n > 1 ? number(step) : core::Scalar::of_int(0), nullptr);
  };
  if (dtype == wanted) return make_result(a.operation(), fill);
  return make_result(a.operation(), [&](Tensor& out) -> Status {
    Tensor real;
    DLBRIDGE_TRY(fill(real));
    return core::copy_as(real, wanted, core::CopyOrder::kC, out);
  });
}

}  // namespace

void init_fills(PyObject* module) {
  add_functions(module,
                {method<kRangeFill, range_fill>(), method<kCountTable, count_table>(), method<kArange, arange>()});
}

}  // namespace dlbridge::py::nd
