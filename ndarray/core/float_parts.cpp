#include "ndarray/core/float_parts.h"

#include <algorithm>
#include <optional>

#include "ndarray/core/dense.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/promotion.h"
#include "ndarray/core/ready.h"
#include "ndarray/kernels/host/float_parts.h"

namespace dlbridge::nd {

namespace {

// Of several axes the result lies as x does.
bool lies_plain(const Tensor& x) noexcept { return is_host(x.dl.device) && (x.dl.ndim <= 1 || is_c_contiguous(x)); }
bool is_wide(DType dtype) noexcept { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

// Integers or bools of the host, which are computed as the floats that NumPy computes them in.
bool are_whole(const Tensor& x) noexcept {
  return is_host(x.dl.device) && (is_integer(dtype_of(x)) || is_bool(dtype_of(x)));
}

// Calls f with a number of the type that a float or the parts of a complex number have.
template <class F>
void with_float(DType dtype, F f) {
  if (real_part(dtype) == DType::kFloat32) f(float());
  else f(double());
}

DType computed_in(const Tensor& x) noexcept {
  return are_whole(x) ? detail::float_for_integer(dtype_of(x)) : dtype_of(x);
}

// Two arrays as x lies; `second_dtype`: where it is not that of the first.
Status split(DenseOp op, const Tensor& x, std::optional<DType> second_dtype, Tensor* parts, bool& done) {
  const DType dtype = computed_in(x);
  done = contains(kFloatSet, dtype);
  if (!done) return {};
  const Tensor* const inputs[] = {&x};
  const DType dtypes[] = {dtype, second_dtype.value_or(dtype)};
  DenseArgs args{};
  args.op = op;
  return run_dense(args, inputs, dtypes, parts, "a split of floats", dtype);
}

// One array as x lies.
Status map_inexact(DenseOp op, const Tensor& x, const double (&numbers)[3], bool flag, Tensor& out, bool& done) {
  done = contains(kInexactSet, dtype_of(x));
  if (!done) return {};
  const Tensor* const inputs[] = {&x};
  const DType dtypes[] = {dtype_of(x)};
  DenseArgs args{};
  args.op = op;
  args.flag = flag;
  std::ranges::copy(numbers, args.numbers);
  return run_dense(args, inputs, dtypes, &out, "a function of floats");
}

// On a device: the exponents as floats, which say how far beyond every bound those are that floats do not hold. Not as
// bfloat16, which holds none beyond 256 exactly and has further to go.
bool scales_on_device(const Tensor& x, const Tensor& exponents) noexcept {
  return !is_host(x.dl.device) && same_device(x.dl.device, exponents.dl.device) &&
         contains(kIntSet | kBoolSet, dtype_of(exponents)) && contains(kFloatSet & ~bit(DType::kBFloat16), dtype_of(x));
}

Status scale_on_device(const Tensor& x, const Tensor& exponents, Tensor& out) {
  const DType dtype = dtype_of(x);
  Tensor powers;
  DLBRIDGE_TRY(copy_as(exponents, dtype, CopyOrder::kKeep, powers));
  const Tensor* const inputs[] = {&x, &powers};
  DenseArgs args{};
  args.op = DenseOp::kScaleByPowers;
  return run_dense(args, inputs, {&dtype, 1}, &out, "ldexp");
}

}  // namespace

Status split_exponents(const Tensor& x, Tensor (&parts)[2], bool& done) {
  return split(DenseOp::kSplitExponents, x, DType::kInt32, parts, done);
}

Status split_wholes(const Tensor& x, Tensor (&parts)[2], bool& done) {
  return split(DenseOp::kSplitWholes, x, {}, parts, done);
}

Status scale_by_powers(const Tensor& x, const Tensor& exponents, Tensor& out, bool& done) {
  done = scales_on_device(x, exponents);
  if (done) return scale_on_device(x, exponents, out);
  if (contains(kHalfSet, dtype_of(x))) {  // as NumPy: float32 holds it, and is rounded once
    Tensor wide, scaled;
    DLBRIDGE_TRY(copy_as(x, DType::kFloat32, CopyOrder::kKeep, wide));
    DLBRIDGE_TRY(scale_by_powers(wide, exponents, scaled, done));
    return done ? copy_as(scaled, dtype_of(x), CopyOrder::kKeep, out) : Status();
  }
  const DType dtype = dtype_of(exponents), floats = computed_in(x);
  if (contains(kHalfSet, floats)) {
    Tensor halves;
    DLBRIDGE_TRY(copy_as(x, floats, CopyOrder::kKeep, halves));
    return scale_by_powers(halves, exponents, out, done);
  }
  done = lies_plain(x) && is_wide(floats) && is_host(exponents.dl.device) && (is_signed(dtype) || is_bool(dtype)) &&
         same_shape(x, exponents);
  if (!done) return {};
  DLBRIDGE_TRY(make_array(out, floats, shape_of(x), x.dl.device));
  const bool is_long = dtype == DType::kInt64;
  const Tensor* const used[] = {&x, &exponents, &out};
  return in_parts({&x, &exponents}, {floats, is_long ? dtype : DType::kInt32}, "ldexp",
                  [&](std::int64_t first, std::int64_t n, const void* const* data) -> Status {
                    KernelCall call(x.dl.device, used);
                    DLBRIDGE_TRY(call.begin());
                    with_float(floats, [&]<class T>(T) {
                      const T* const numbers = static_cast<const T*>(data[0]);
                      T* const to = elements<T>(out) + first;
                      if (is_long)
                        host_kernels::scale_by_powers(numbers, static_cast<const std::int64_t*>(data[1]), n, to);
                      else host_kernels::scale_by_powers(numbers, static_cast<const std::int32_t*>(data[1]), n, to);
                    });
                    return call.end(0, "ldexp");
                  });
}

Status find_spacings(const Tensor& x, Tensor& out, bool& done) {
  const DType floats = computed_in(x);
  const bool is_half = floats == DType::kFloat16;
  done = lies_plain(x) && (is_half || is_wide(floats));
  if (!done) return {};
  DLBRIDGE_TRY(make_array(out, floats, shape_of(x), x.dl.device));
  const Tensor* const used[] = {&x, &out};
  return in_parts({&x}, {floats}, "spacing",
                  [&](std::int64_t first, std::int64_t n, const void* const* data) -> Status {
                    KernelCall call(x.dl.device, used);
                    DLBRIDGE_TRY(call.begin());
                    const auto find = [&]<class T>(T) {
                      host_kernels::find_spacings(static_cast<const T*>(data[0]), n, elements<T>(out) + first);
                    };
                    if (is_half) find(float16());
                    else with_float(floats, find);
                    return call.end(0, "spacing");
                  });
}

Status replace_specials(const Tensor& x, double nan, double high, double low, Tensor& out, bool& done) {
  return map_inexact(DenseOp::kReplaceSpecials, x, {nan, high, low}, false, out, done);
}

Status replace_nan(const Tensor& x, double number, Tensor& out, bool& done) {
  return map_inexact(DenseOp::kReplaceNan, x, {number, 0, 0}, false, out, done);
}

Status round_at(const Tensor& x, double scale, bool inverse, Tensor& out, bool& done) {
  return map_inexact(DenseOp::kRoundAt, x, {scale, 0, 0}, !inverse, out, done);
}

}  // namespace dlbridge::nd
