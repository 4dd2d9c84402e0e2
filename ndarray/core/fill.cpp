#include "ndarray/core/fill.h"

#include <algorithm>
#include <cstring>

#include "ndarray/core/kernel_call.h"
#include "ndarray/kernels/host/trials.h"
#include "ndarray/kernels/random/philox.h"

namespace dlbridge::nd {

namespace {

template <class KernelArgs>
Status fill(const Tensor& out, KernelArgs& args, int (*Backend::*kernel)(const KernelArgs&), const char* name,
            const Tensor* beside = nullptr) {
  if (!is_c_contiguous(out) || out.readonly()) return malformed("the output must be dense in C order and writable");
  if (out.size == 0) return {};
  args.dtype = dtype_of(out);
  args.n = out.size;
  args.out = out.dl.data;
  const Tensor* const used[] = {&out, beside};
  KernelCall call(out.dl.device, std::span(used).first(beside == nullptr ? 1 : 2));
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end((call.backend().*kernel)(args), name);
}

bool dense_on_host(const Tensor& x, DType dtype) noexcept {
  return dtype_of(x) == dtype && is_c_contiguous(x) && same_device(x.dl.device, {kDLCPU, 0});
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

Status fill_random(const Tensor& out, RandomArgs args, const Tensor* shapes) {
  if (shapes != nullptr) {
    if (dtype_of(*shapes) != DType::kFloat64 || !is_c_contiguous(*shapes) || shapes->size != out.size ||
        !same_device(shapes->dl.device, out.dl.device))
      return malformed("the shapes must be as many float64 as there are elements, dense and on the same device");
    args.shapes = static_cast<const double*>(shapes->dl.data);
  }
  return fill(out, args, &Backend::random, "random_fill()", shapes);
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

Status draw_counts(const Tensor& out, host_kernels::CountLaw law, std::uint64_t seed,
                   std::span<const Tensor* const> parameters) {
  host_kernels::CountsArgs args{law, {}, {}, seed, out.size, static_cast<double*>(out.dl.data)};
  const Tensor* used[1 + host_kernels::kMostParameters] = {&out};
  for (std::size_t i = 0; i < host_kernels::kMostParameters; ++i) {
    const Tensor& x = *(used[1 + i] = parameters[std::min(i, parameters.size() - 1)]);
    if (!dense_on_host(x, DType::kFloat64) || (x.size != 1 && x.size != out.size))
      return malformed("the parameters must be float64 on the host, dense, one or as many as there are counts");
    args.parameters[i] = static_cast<const double*>(x.dl.data);
    args.one_for_all[i] = x.size == 1;
  }
  if (!dense_on_host(out, DType::kFloat64) || out.readonly())
    return malformed("the output must be float64 on the host, dense in C order and writable");
  if (out.size == 0) return {};
  KernelCall call(out.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  return call.end(host_kernels::draw_counts(args) ? 0 : kErrorMemory, "count_fill()");
}

Status count_trials(const Tensor& out, const Tensor& sums, std::int64_t trials, std::uint64_t seed,
                    std::uint64_t offset) {
  const std::int64_t outcomes = sums.size + 1;
  if (!dense_on_host(out, DType::kInt64) || out.readonly() || !dense_on_host(sums, DType::kFloat64) ||
      out.size % outcomes != 0 || trials < 1 || trials > host_kernels::kMostTrials)
    return malformed("there must be an int64 for each outcome of each row, and a few trials");
  if (out.size == 0) return {};
  const Tensor* const used[] = {&out, &sums};
  KernelCall call(out.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::count_trials({static_cast<const double*>(sums.dl.data), outcomes, trials, out.size / outcomes, seed,
                              offset, static_cast<std::int64_t*>(out.dl.data)});
  return call.end(0, "trials_fill()");
}

Status fill_formula(const Tensor& out, host_kernels::FormulaArgs args) {
  const DType dtype = host_kernels::gives_counts(args.formula) ? DType::kInt64 : DType::kFloat64;
  if (!dense_on_host(out, dtype) || out.readonly())
    return malformed("the output must be float64 (int64 of counts) on the host, dense in C order and writable");
  args.n = out.size;
  args.out = out.dl.data;
  const Tensor* const arrays[] = {&out};
  KernelCall call(out.dl.device, arrays);
  DLBRIDGE_TRY(call.begin());
  host_kernels::draw_formula(args);
  return call.end(0, "formula_fill()");
}

Status make_from_scalars(Tensor& out, std::span<const Scalar> scalars, std::optional<DType> dtype, Dims shape) {
  const DType kind = dtype.value_or(promoted(scalars));
  DLBRIDGE_TRY(make_array(out, kind, shape, {kDLCPU, 0}));
  auto* to = static_cast<unsigned char*>(out.dl.data);
  const auto item = static_cast<std::size_t>(out.itemsize());
  for (const Scalar& scalar : scalars) {
    ScalarValue value;
    DLBRIDGE_TRY(write_scalar(scalar, kind, value));
    std::memcpy(to, value.bytes, item);
    to += item;
  }
  return {};
}

}  // namespace dlbridge::nd
