// Floats taken apart and put together on the host, in one call: see host_only.h.
#include "ndarray/core/float_parts.h"

#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

template <Status (*split)(const Tensor&, Tensor&, Tensor&, bool&)>
PyObject* split_on_host(PyObject*, const Call& a) {
  const Tensor* x = host_array(a.given(0));
  Tensor parts[2];
  bool done = false;
  if (x != nullptr) throw_if_bad(split(*x, parts[0], parts[1], done), a.operation());
  return done ? tuple_of(parts) : Ref::borrow(Py_None).release();
}

constexpr char kFrexp[] = "frexp()";
constexpr char kFrexpOnHost[] =
    "frexp_on_host($module, x)\n--\n\nfrexp() of a dense float32 or float64 array of the host; None for others.";
constexpr char kModf[] = "modf()";
constexpr char kModfOnHost[] =
    "modf_on_host($module, x)\n--\n\nmodf() of a dense float32 or float64 array of the host; None for others.";

constexpr char kLdexp[] = "ldexp()";
constexpr char kLdexpOnHost[] = "ldexp_on_host($module, x, exponents)\n--\n\n"
                                "ldexp() of dense float32 or float64 and integers of its shape; None for others.";
PyObject* ldexp_on_host(PyObject*, const Call& a) {
  const Tensor *x = host_array(a.given(0)), *exponents = host_array(a.given(1));
  if (x == nullptr || exponents == nullptr) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::scale_by_powers(*x, *exponents, out, done); });
}

constexpr char kSpacing[] = "spacing()";
constexpr char kSpacingOnHost[] =
    "spacing_on_host($module, x)\n--\n\nspacing() of a dense float32 or float64 array of the host; None for others.";
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
      {method<kFrexpOnHost, split_on_host<core::split_exponents>, kFrexp>(),
       method<kModfOnHost, split_on_host<core::split_wholes>, kModf>(), method<kLdexpOnHost, ldexp_on_host, kLdexp>(),
       method<kSpacingOnHost, spacing_on_host, kSpacing>(), method<kNanToNumOnHost, nan_to_num_on_host, kNanToNum>()});
}

}  // namespace dlbridge::py::nd
