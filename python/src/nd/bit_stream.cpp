// _native.BitStream: the state of a Philox4x32, and the numbers that it gives: into an array, or a new array where the
// parameters are plain numbers that a distribution has.
#include <cmath>

#include "ndarray/core/fill.h"
#include "ndarray/core/promotion.h"
#include "ndarray/core/sorting.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

using core::Distribution;

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

Status draw(PyObject* stream, const Tensor& out, core::RandomArgs args, std::span<const Tensor* const> arrays = {}) {
  Counters counters(stream, core::counters_of(out, args.distribution));
  args.seed = counters.key;
  args.offset = counters.first;
  Status status = core::fill_random(out, args, arrays);
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

// clang-format off
constexpr const char* kDistributions[] = {
    "uniform", "normal", "integer", "exponential", "laplace", "logistic", "gumbel", "rayleigh", "standard_cauchy",
    "pareto", "power", "weibull", "triangular", "geometric", "gamma", "log_gamma", "beta", "f", "standard_t", "wald",
    "vonmises", "noncentral_chisquare", "noncentral_f", "poisson", "negative_binomial", "zipf", "logseries",
    "binomial", "hypergeometric"};
// clang-format on
Names<Distribution, std::size(kDistributions)> distributions(kDistributions);

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

constexpr double kCounts = 0x1p62;  // the rule "count"

// The kernels' second parameter of the negative binomial distribution, for a probability.
double scale_of(double chance) noexcept { return (1 - chance) / chance; }

// Whether a number of that distribution is to be drawn with these parameters by every rule: what is left out here, the
// rules of python/dlbridge/nd/_distributions.py decide.
bool has(Distribution distribution, double a, double b, double c) noexcept {
  switch (distribution) {
    case Distribution::kUniform: return true;
    case Distribution::kTriangular: return a <= b && b <= c && a < c;
    case Distribution::kGeometric: return a > 0 && a <= 1;
    case Distribution::kLogseries: return a >= 0 && a < 1;
    case Distribution::kZipf: return a > 1;
    case Distribution::kPoisson: return a >= 0 && a < kCounts;
    case Distribution::kVonMises: return a >= 0;
    case Distribution::kNoncentralChisquare: return a > 0 && b >= 0 && b < kCounts;
    case Distribution::kNoncentralF: return a > 0 && b > 0 && c >= 0 && c < kCounts;
    case Distribution::kNegativeBinomial:
      return a > 0 && b > 0 && b <= 1 && (a + 10 * std::sqrt(a)) * scale_of(b) < kCounts;
    case Distribution::kBinomial:
    case Distribution::kHypergeometric: return false;
    case Distribution::kPareto:
    case Distribution::kPower:
    case Distribution::kWeibull:
    case Distribution::kBeta:
    case Distribution::kF:
    case Distribution::kStandardT:
    case Distribution::kWald: return a > 0 && b > 0;
    default: break;
  }
  const bool located = distribution != Distribution::kExponential && distribution <= Distribution::kCauchy;
  return b >= 0 && (located || a >= 0);
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
    "draw($self, kind, size, dtype, device, a=0.0, b=1.0, c=0.0)\n--\n\n"
    "A new array of a distribution of the kernels; None unless a, b and c are plain numbers that it has, and the dtype "
    "is\none of its own.";
constexpr char kDrawName[] = "random";
PyObject* draw_new(PyObject* self, const Call& v) {
  core::RandomArgs args{};
  args.distribution = distributions.of(v.given(0), v);
  args.b = 1;
  const DType dtype = v.dtype(2).value_or(core::kDefaultFloat);
  if ((core::gives_counts(args.distribution) ? dtype != DType::kInt64 : !core::is_float(dtype)) ||
      !plain_number(v.given(4), args.a) || !plain_number(v.given(5), args.b) || !plain_number(v.given(6), args.c) ||
      !has(args.distribution, args.a, args.b, args.c))
    Py_RETURN_NONE;
  if (args.distribution == Distribution::kNegativeBinomial) args.b = scale_of(args.b);
  return drawn(v, 1, dtype, or_default(v.device(3)), [&](Tensor& out) { return draw(self, out, args); });
}

constexpr char kDrawByTable[] =
    "draw_by_table($self, sums, first, size)\n--\n\n"
    "A new array of counts from `first` on, by the inverse of the sums of their probabilities, where those lie.";
PyObject* draw_by_table(PyObject* self, const Call& v) {
  const Tensor& sums = v.array(0);
  const std::int64_t first = v.integer(1, 0);
  return drawn(v, 2, DType::kFloat64, sums.dl.device, [&](Tensor& out) -> Status {
    core::RandomArgs args{};
    args.distribution = Distribution::kUniform;
    args.b = 1;
    DLBRIDGE_TRY(draw(self, out, args));
    Tensor counts;
    DLBRIDGE_TRY(core::searchsorted(sums, out, true, false, counts));
    out = std::move(counts);
    if (first == 0) return {};
    const core::Input operands[] = {{&out, {}}, {nullptr, core::Scalar::of_int(first)}};
    core::ElementwiseOptions options;
    options.out = &out;
    Tensor none;
    return core::elementwise(core::Op::kAdd, operands, options, none);
  });
}

constexpr char kDrawIntegers[] =
    "draw_integers($self, low, high, size, dtype, endpoint, device)\n--\n\n"
    "A new array of integers from low (0 for high None) to below high, or with it; None unless they are plain numbers\n"
    "between which there are some, and all are the dtype's.";
PyObject* draw_integers(PyObject* self, const Call& v) {
  const DType dtype = v.dtype(3).value_or(core::kDefaultInt);
  PyObject* const low = v[1] == nullptr ? nullptr : v.given(0);
  PyObject* const high = v[1] == nullptr ? v.given(0) : v[1];
  std::int64_t first = 0, last = 0;
  if (!core::is_integer(dtype) || (low != nullptr && !parse_integer(low, first)) || !parse_integer(high, last) ||
      (!v.flag(4, false) && __builtin_sub_overflow(last, 1, &last)) || last < first ||
      !core::fits(core::Scalar::of_int(first), dtype) || !core::fits(core::Scalar::of_int(last), dtype))
    Py_RETURN_NONE;
  core::RandomArgs args{};
  args.distribution = Distribution::kInteger;
  args.int_low = first;
  args.int_range = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;  // 0: all of 2**64
  return drawn(v, 2, dtype, or_default(v.device(5)), [&](Tensor& out) { return draw(self, out, args); });
}

constexpr char kFill[] =
    "fill($self, x, kind, a=0.0, b=1.0, c=0.0, low=0, extent=0)\n--\n\n"
    "Draws a distribution of the kernels into a dense array; a, b and c may be arrays of as many float64.";
PyObject* fill(PyObject* self, const Call& v) {
  core::RandomArgs args{};
  const Tensor& out = v.array(0);
  args.distribution = distributions.of(v.given(1), v);
  args.b = 1;
  double* const numbers[] = {&args.a, &args.b, &args.c};
  const Tensor* arrays[core::kParameters] = {};
  for (std::size_t i = 0; i < std::size(arrays); ++i) {
    if (v[2 + i] == nullptr) continue;
    const core::Input given = v.operand(2 + i);
    arrays[i] = given.array;
    if (given.array == nullptr) *numbers[i] = given.scalar.re;
  }
  args.int_low = v[5] == nullptr ? 0 : static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(v[5]));
  args.int_range = v[6] == nullptr ? 0 : PyLong_AsUnsignedLongLongMask(v[6]);
  checked(PyErr_Occurred() == nullptr);
  throw_if_bad(draw(self, out, args, arrays), v.operation());
  Py_RETURN_NONE;
}

constexpr char kMultinomial[] =
    "multinomial($self, x, chances, trials)\n--\n\n"
    "Fills rows of int64 with how often each outcome was; the parameters are float64, trials a number or one a row.";
PyObject* multinomial(PyObject* self, const Call& v) {
  core::MultinomialArgs args{};
  const core::Input trials = v.operand(2);
  const Tensor* used[] = {&v.array(0), &v.array(1), trials.array};
  if (trials.array == nullptr) args.trials = trials.scalar.re;
  throw_if_bad(core::prepare_multinomial(args, *used[0], *used[1], used[2]), v.operation());
  Counters counters(self, core::counters_of(args));
  args.seed = counters.key;
  args.offset = counters.first;
  throw_if_bad(core::fill_multinomial(args, std::span(used).first(trials.array == nullptr ? 2 : 3)), v.operation());
  counters.is_used = true;
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
  add_type(
      module, "dlbridge.nd.BitStream", sizeof(BitStream), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
      {doc_slot("A place in a stream of random bits: the key of Philox4x32-10, and how many counters are used."),
       getters_slot({getter<get_key>("key", "int: made of the seed."),
                     getter<get_offset>("offset", "int: how many counters are used."),
                     getter<get_place>("_place", "(key, offset), of one moment")}),
       methods_slot({method<kDraw, draw_new, kDrawName>(), method<kDrawByTable, draw_by_table, kDrawName>(),
                     method<kDrawIntegers, draw_integers>(), method<kFill, fill>(), method<kMultinomial, multinomial>(),
                     method<kTake, take>(), method<kSetState, set_state>()})});
}

}  // namespace dlbridge::py::nd
