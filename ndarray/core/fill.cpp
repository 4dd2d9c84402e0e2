#include "ndarray/core/fill.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ndarray/core/elementwise.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/kernels/random/multinomial.h"
#include "ndarray/runtime/driver.h"

namespace dlbridge::nd {

namespace {

template <class KernelArgs>
Status fill(const Tensor& out, KernelArgs& args, int (*Backend::*kernel)(const KernelArgs&), const char* name,
            std::span<const Tensor* const> beside = {}) {
  if (!is_c_contiguous(out) || out.readonly()) return malformed("the output must be dense in C order and writable");
  if (out.size == 0) return {};
  args.dtype = dtype_of(out);
  args.n = out.size;
  args.out = out.dl.data;
  const Tensor* used[1 + kParameters] = {&out};
  std::size_t count = 1;
  for (const Tensor* array : beside)
    if (array != nullptr) used[count++] = array;
  KernelCall call(out.dl.device, std::span(used).first(count));
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end((call.backend().*kernel)(args), name);
}

std::int64_t integer_of(const Scalar& s) noexcept {
  return s.kind <= ScalarKind::kInt ? s.i : static_cast<std::int64_t>(s.re);
}

DType promoted(std::span<const Scalar> scalars) noexcept {
  if (scalars.empty()) return kDefaultFloat;
  DType out = DType::kBool;
  for (const Scalar& s : scalars)
    out = promote(out, s.above_int64 ? DType::kUInt64 : s.strong ? s.dtype : default_dtype(s.kind));
  return out;
}

}  // namespace

Status fill_bytes(const Tensor& out, unsigned char byte) {
  constexpr std::int64_t kMostBytes = 4096;  // so few are set on the host before a loop for them is found
  if (out.size == 0) return {};
  const auto bytes = static_cast<std::size_t>(out.nbytes());
  if (is_host(out.dl.device)) {
    if (out.nbytes() > kMostBytes) return assign(out, {nullptr, Scalar::of_int(byte)}, "zeros()");
    std::memset(out.dl.data, byte, bytes);
    return {};
  }
  const Tensor* const used[] = {&out};
  KernelCall call(out.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  const CUresult code = driver().memset_d8_async(reinterpret_cast<CUdeviceptr>(out.dl.data), byte, bytes,
                                                 cuda::detail::as_stream(call.stream()));
  return call.end(static_cast<int>(code), "zeros()");
}

Status fill_range(const Tensor& out, const Scalar& start, const Scalar& step, const Scalar* stop) {
  RangeArgs args{};
  args.start = start.re;
  args.step = step.re;
  args.int_start = integer_of(start);
  args.int_step = integer_of(step);
  args.endpoint = stop != nullptr;
  if (stop != nullptr) args.stop = stop->re;
  return fill(out, args, &Backend::range, "range_fill()");
}

Status fill_random(const Tensor& out, RandomArgs args, std::span<const Tensor* const> arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i] == nullptr) continue;
    const Tensor& x = *arrays[i];
    if (dtype_of(x) != DType::kFloat64 || !is_c_contiguous(x) || x.size != out.size ||
        !same_device(x.dl.device, out.dl.device))
      return malformed("the parameters must be as many float64 as there are elements, dense and on the same device");
    if (args.distribution < Distribution::kLaplace) return malformed("this distribution's parameters are numbers");
    args.arrays[i] = static_cast<const double*>(x.dl.data);
  }
  return fill(out, args, &Backend::random, "random_fill()", arrays);
}

std::uint64_t counters_of(const Tensor& out, Distribution distribution) noexcept {
  return philox::counters_used(distribution, dtype_of(out), out.size);
}

Status sum_probabilities(Tensor& out, const host_kernels::LogConcave& law, std::int64_t most,
                         std::optional<double>& first) {
  const host_kernels::TableSpan span = host_kernels::table_span(law);
  const bool fits = span.entries <= static_cast<double>(most);  // not for NaN
  const std::int64_t entries = fits ? static_cast<std::int64_t>(span.entries) : 0;
  DLBRIDGE_TRY(make_array(out, DType::kFloat64, {&entries, 1}, {kDLCPU, 0}));
  if (!fits) return {};
  first = span.first;
  host_kernels::sum_probabilities(law, span.first, entries, static_cast<double*>(out.dl.data));
  return {};
}

Status prepare_multinomial(MultinomialArgs& args, const Tensor& out, const Tensor& chances, const Tensor* trials) {
  const std::int64_t outcomes = out.dl.ndim == 0 ? 0 : out.dl.shape[out.dl.ndim - 1];
  const Tensor* const used[] = {&out, &chances, trials};
  for (const Tensor* x : used)
    if (x != nullptr && (dtype_of(*x) != (x == &out ? DType::kInt64 : DType::kFloat64) || !is_c_contiguous(*x) ||
                         !same_device(x->dl.device, out.dl.device)))
      return malformed("the counts must be int64, the parameters float64, all dense and on the same device");
  if (outcomes == 0 || out.readonly() || (chances.size != outcomes && chances.size != out.size) ||
      (trials != nullptr && trials->size != out.size / outcomes))
    return malformed("there must be a probability an outcome or an element, and as many trials as rows");
  args.outcomes = outcomes;
  args.rows = out.size / outcomes;
  args.chances = static_cast<const double*>(chances.dl.data);
  args.chances_step = chances.size == outcomes ? 0 : outcomes;
  if (trials != nullptr) args.trials_of_rows = static_cast<const double*>(trials->dl.data);
  args.out = static_cast<std::int64_t*>(out.dl.data);
  return {};
}

Status fill_multinomial(MultinomialArgs args, std::span<const Tensor* const> used) {
  KernelCall call(used.front()->dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end(call.backend().multinomial(args), "multinomial()");
}

std::uint64_t counters_of(const MultinomialArgs& args) noexcept { return philox::counters_used(args); }

namespace {
Scalar scalar_of(double leaf) noexcept { return Scalar::of_float(leaf); }
Scalar scalar_of(std::int64_t leaf) noexcept { return Scalar::of_int(leaf); }
const Scalar& scalar_of(const Scalar& leaf) noexcept { return leaf; }

DType promoted(std::span<const double>) noexcept { return DType::kFloat64; }
DType promoted(std::span<const std::int64_t> leaves) noexcept { return leaves.empty() ? kDefaultFloat : DType::kInt64; }
}  // namespace

template <class Leaf>
Status make_from(Tensor& out, std::span<const Leaf> leaves, std::optional<DType> dtype, Dims shape) {
  const DType own = promoted(leaves), kind = dtype.value_or(own);
  DLBRIDGE_TRY(make_array(out, kind, shape, {kDLCPU, 0}));
  auto* to = static_cast<unsigned char*>(out.dl.data);
  if (!std::is_same_v<Leaf, Scalar> && kind == own && !leaves.empty()) {
    std::memcpy(to, leaves.data(), leaves.size_bytes());
    return {};
  }
  if constexpr (std::is_same_v<Leaf, std::int64_t>)
    if (kind == DType::kFloat64) {
      std::ranges::copy(leaves, static_cast<double*>(out.dl.data));
      return {};
    }
  const auto item = static_cast<std::size_t>(out.itemsize());
  for (const Leaf& leaf : leaves) {
    ScalarValue value;
    DLBRIDGE_TRY(write_scalar(scalar_of(leaf), kind, value));
    std::memcpy(to, value.bytes, item);
    to += item;
  }
  return {};
}
template Status make_from(Tensor&, std::span<const double>, std::optional<DType>, Dims);
template Status make_from(Tensor&, std::span<const std::int64_t>, std::optional<DType>, Dims);
template Status make_from(Tensor&, std::span<const Scalar>, std::optional<DType>, Dims);

}  // namespace dlbridge::nd
