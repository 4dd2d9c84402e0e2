#include "ndarray/core/fill.h"

#include <cstring>

#include "ndarray/core/kernel_call.h"
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

Status fill_random(const Tensor& out, RandomArgs args, std::uint64_t& used, const Tensor* shapes) {
  if (shapes != nullptr) {
    if (dtype_of(*shapes) != DType::kFloat64 || !is_c_contiguous(*shapes) || shapes->size != out.size ||
        !same_device(shapes->dl.device, out.dl.device))
      return malformed("the shapes must be as many float64 as there are elements, dense and on the same device");
    args.shapes = static_cast<const double*>(shapes->dl.data);
  }
  DLBRIDGE_TRY(fill(out, args, &Backend::random, "random_fill()", shapes));
  used = philox::counters_used(args.distribution, dtype_of(out), out.size);
  return {};
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
