// _native.BitStream: the state of a Philox4x32, and the numbers that it gives: into an array, or a new array where the
// parameters are plain numbers that a distribution has.
#include <cmath>

#include "ndarray/core/fill.h"
#include "ndarray/core/promotion.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/threads.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

using core::Distribution;
using core::host_kernels::Formula;

struct BitStream {
  PyObject_HEAD std::uint64_t key;
  std::uint64_t offset;  // counters that are used
};

BitStream* as_stream(PyObject* object) noexcept { return reinterpret_cast<BitStream*>(object); }

// Counters of a stream for one call. It gives them back where nothing was drawn, and nobody else has drawn since.
class Counters {
 public:
  Counters(PyObject* stream, std::uint64_t count) noexcept : stream_(stream), count_(count) {
    const CriticalSection hold(stream);
    key = as_stream(stream)->key;
    first = as_stream(stream)->offset;
    as_stream(stream)->offset += count;
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters() {
    if (is_used) return;
    const CriticalSection hold(stream_);
    if (as_stream(stream_)->offset == first + count_) as_stream(stream_)->offset = first;
  }

  std::uint64_t key, first;
  bool is_used = false;

 private:
  PyObject* stream_;
  std::uint64_t count_;
};

Status draw(PyObject* stream, const Tensor& out, core::RandomArgs args, const Tensor* shapes = nullptr) {
  Counters counters(stream, core::counters_of(out, args.distribution));
  args.seed = counters.key;
  args.offset = counters.first;
  Status status = core::fill_random(out, args, shapes);
  counters.is_used = status.ok();
  return status;
}

Status draw(PyObject* stream, const Tensor& out, core::host_kernels::FormulaArgs args) {
  Counters counters(stream, core::host_kernels::counters_of(args.formula, out.size));
  args.seed = counters.key;
  args.offset = counters.first;
  Status status = core::fill_formula(out, args);
  counters.is_used = status.ok();
  return status;
}

// --- arguments -------------------------------------------------------------------------------------------------------

// Names in the order of an enum.
template <class Kind, std::size_t n>
class Names {
 public:
  constexpr explicit Names(const char* const (&texts)[n]) {
    for (std::size_t i = 0; i < n; ++i) texts_[i] = texts[i];
  }
  Kind of(PyObject* name, const Call& a) {
    for (std::size_t i = 0; i < n; ++i)
      if (name == interned_[i].load()) return static_cast<Kind>(i);
    for (std::size_t i = 0; i < n; ++i) {
      if (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, texts_[i]) != 0) continue;
      checked(find_once(interned_[i], [&] { return PyUnicode_InternFromString(texts_[i]); }));
      return static_cast<Kind>(i);
    }
    throw_error(PyExc_ValueError, "%s: unknown kind %R", a.operation(), name);
  }

 private:
  const char* texts_[n] = {};
  Atomic<PyObject*> interned_[n];
};

constexpr const char* kDistributions[] = {
    "uniform",         "normal", "integer",   "exponential", "laplace",           "logistic", "gumbel",  "rayleigh",
    "standard_cauchy", "gamma",  "log_gamma", "poisson",     "negative_binomial", "zipf",     "vonmises"};
Names<Distribution, std::size(kDistributions)> distributions(kDistributions);
constexpr const char* kFormulas[] = {"triangular", "wald", "geometric", "logseries"};
Names<Formula, std::size(kFormulas)> formulas(kFormulas);

// Whether it is a finite real number of Python's or NumPy's; where none is given `out` stays.
bool plain_number(PyObject* object, double& out) {
  if (object == nullptr) return true;
  core::Input input;
  const Parsed parsed = parse_operand(object, input);
  checked(parsed != Parsed::kError || pardon_numpy(object));
  if (parsed != Parsed::kYes || input.array != nullptr || input.scalar.kind > core::ScalarKind::kFloat) return false;
  out = input.scalar.re;
  return std::isfinite(out);
}

// Whether a number of that distribution is to be drawn with these parameters by every rule: what is left out here, the
// rules of python/dlbridge/nd/_distributions.py decide.
bool has(Distribution distribution, double a, double b) noexcept {
  if (distribution == Distribution::kUniform) return true;
  if (distribution == Distribution::kZipf) return a > 1;
  if (distribution == Distribution::kPoisson) return a >= 0 && a < 0x1p62;
  const bool located = distribution == Distribution::kNormal ||
                       (distribution >= Distribution::kLaplace && distribution <= Distribution::kCauchy);
  return b >= 0 && (located || a >= 0);
}

bool has(Formula formula, const double (&p)[3]) noexcept {
  switch (formula) {
    case Formula::kTriangular: return p[0] <= p[1] && p[1] <= p[2] && p[0] < p[2];
    case Formula::kWald: return p[0] > 0 && p[1] > 0;
    case Formula::kGeometric: return p[0] > 0 && p[0] <= 1;
    default: return p[0] >= 0 && p[0] < 1;
  }
}

// A new array of a size, None for no dimension.
template <class Fill>
PyObject* drawn(const Call& a, std::size_t size_at, DType dtype, DLDevice device, Fill fill) {
  const Shape shape = a[size_at] == nullptr ? Shape() : a.shape(size_at);
  return make_result(a.operation(), [&](Tensor& out) -> Status {
    DLBRIDGE_TRY(core::make_array(out, dtype, shape.get(), device));
    return out.size == 0 ? Status() : fill(out);
  });
}

// --- methods ---------------------------------------------------------------------------------------------------------

constexpr char kDraw[] =
    "draw($self, kind, size, dtype, device, a=0.0, b=1.0)\n--\n\n"
    "A new array of a distribution of the kernels; None unless a and b are plain numbers that it has, and the dtype is "
    "one\nof its own.";
constexpr char kDrawName[] = "random";
PyObject* draw_new(PyObject* self, const Call& v) {
  core::RandomArgs args{};
  args.distribution = distributions.of(v.given(0), v);
  args.b = 1;
  const DType dtype = v.dtype(2).value_or(core::kDefaultFloat);
  const bool counts = args.distribution >= Distribution::kPoisson;
  if ((counts ? dtype != DType::kInt64 : !core::is_float(dtype)) || !plain_number(v.given(4), args.a) ||
      !plain_number(v.given(5), args.b) || !has(args.distribution, args.a, args.b))
    Py_RETURN_NONE;
  return drawn(v, 1, dtype, or_default(v.device(3)), [&](Tensor& out) { return draw(self, out, args); });
}

constexpr char kDrawIntegers[] =
    "draw_integers($self, low, high, size, dtype, endpoint, device)\n--\n\n"
    "A new array of integers from low (0 for high None) to below high, or with it; None unless they are plain numbers\n"
    "between which there are some, and all are the dtype's.";
PyObject* draw_integers(PyObject* self, const Call& v) {
  const DType dtype = v.dtype(3).value_or(core::kDefaultInt);
  PyObject* const low = v[1] == nullptr ? nullptr : v.given(0);
  PyObject* const high = v[1] == nullptr ? v.given(0) : v[1];
  if (!core::is_integer(dtype) || !PyLong_CheckExact(high) || (low != nullptr && !PyLong_CheckExact(low)))
    Py_RETURN_NONE;
  int below = 0, above = 0;
  const std::int64_t first = low == nullptr ? 0 : checked_number(PyLong_AsLongLongAndOverflow(low, &below));
  std::int64_t last = checked_number(PyLong_AsLongLongAndOverflow(high, &above));
  if (below != 0 || above != 0 || (!v.flag(4, false) && __builtin_sub_overflow(last, 1, &last)) || last < first ||
      !core::fits(core::Scalar::of_int(first), dtype) || !core::fits(core::Scalar::of_int(last), dtype))
    Py_RETURN_NONE;
  core::RandomArgs args{};
  args.distribution = Distribution::kInteger;
  args.int_low = first;
  args.int_range = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;  // 0: all of 2**64
  return drawn(v, 2, dtype, or_default(v.device(5)), [&](Tensor& out) { return draw(self, out, args); });
}

constexpr char kDrawByFormula[] =
    "draw_by_formula($self, formula, size, device, a, b=0.0, c=0.0)\n--\n\n"
    "A new array of one of the host's formulas, of float64, or int64 for counts; None unless it lies on the host and "
    "the\nparameters are plain numbers that the distribution has.";
PyObject* draw_by_formula(PyObject* self, const Call& v) {
  core::host_kernels::FormulaArgs args{};
  args.formula = formulas.of(v.given(0), v);
  double (&p)[3] = args.parameters;
  for (std::size_t i = 0; i < std::size(p); ++i)
    if (!plain_number(v.given(3 + i), p[i])) Py_RETURN_NONE;
  const DLDevice device = or_default(v.device(2));
  if (!is_host(device) || !has(args.formula, p)) Py_RETURN_NONE;
  const bool counts = core::host_kernels::gives_counts(args.formula);
  if (counts) {
    Tensor logarithm;
    const core::Input one_less{nullptr, core::Scalar::of_float(-p[0])};
    throw_if_bad(core::make_from_scalars(logarithm, {&one_less.scalar, 1}, DType::kFloat64, {}), v.operation());
    const core::Input chance{&logarithm, {}};
    const core::ElementwiseOptions in_place{.out = &logarithm};
    Tensor none;
    throw_if_bad(core::elementwise(core::Op::kLog1p, {&chance, 1}, in_place, none), v.operation());
    p[args.formula == Formula::kGeometric ? 0 : 1] = *static_cast<const double*>(logarithm.dl.data);
  }
  return drawn(v, 1, counts ? DType::kInt64 : DType::kFloat64, device,
               [&](Tensor& out) { return draw(self, out, args); });
}

constexpr char kFill[] = "fill($self, x, kind, a=0.0, b=1.0, low=0, extent=0, shapes=None)\n--\n\n"
                         "Draws a distribution of the kernels into a dense array.";
PyObject* fill(PyObject* self, const Call& v) {
  core::RandomArgs args{};
  const Tensor& out = v.array(0);
  args.distribution = distributions.of(v.given(1), v);
  args.a = v.number(2, 0.0);
  args.b = v.number(3, 1.0);
  args.int_low = v[4] == nullptr ? 0 : static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(v[4]));
  args.int_range = v[5] == nullptr ? 0 : PyLong_AsUnsignedLongLongMask(v[5]);
  checked(PyErr_Occurred() == nullptr);
  throw_if_bad(draw(self, out, args, v.optional_array(6)), v.operation());
  Py_RETURN_NONE;
}

constexpr char kTake[] = "take($self, count)\n--\n\nThe first of `count` counters, which no later number uses.";
PyObject* take(PyObject* self, const Call& v) {
  Counters counters(self, static_cast<std::uint64_t>(v.integer(0, 0)));
  counters.is_used = true;
  return PyLong_FromUnsignedLongLong(counters.first);
}

constexpr char kSetState[] = "_set($self, key, offset)\n--\n\nGoes to a place of a stream.";
PyObject* set_state(PyObject* self, const Call& v) {
  const std::uint64_t key = PyLong_AsUnsignedLongLongMask(v.given(0));
  const std::uint64_t offset = PyLong_AsUnsignedLongLongMask(v.given(1));
  checked(PyErr_Occurred() == nullptr);
  const CriticalSection hold(self);
  as_stream(self)->key = key;
  as_stream(self)->offset = offset;
  Py_RETURN_NONE;
}

PyObject* get_place(PyObject* self) {
  const Counters none(self, 0);
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(none.key), static_cast<unsigned long long>(none.first));
}
PyObject* get_key(PyObject* self) { return PyLong_FromUnsignedLongLong(Counters(self, 0).key); }
PyObject* get_offset(PyObject* self) { return PyLong_FromUnsignedLongLong(Counters(self, 0).first); }

}  // namespace

void init_bit_stream(PyObject* module) {
  add_type(module, "dlbridge.nd.BitStream", sizeof(BitStream), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
           {doc_slot("A place in a stream of random bits: the key of Philox4x32-10, and how many counters are used."),
            getters_slot({getter<get_key>("key", "int: made of the seed."),
                          getter<get_offset>("offset", "int: how many counters are used."),
                          getter<get_place>("_place", "(key, offset), of one moment")}),
            methods_slot({method<kDraw, draw_new, kDrawName>(), method<kDrawIntegers, draw_integers>(),
                          method<kDrawByFormula, draw_by_formula>(), method<kFill, fill>(), method<kTake, take>(),
                          method<kSetState, set_state>()})});
}

}  // namespace dlbridge::py::nd
