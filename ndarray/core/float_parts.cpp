#include "ndarray/core/float_parts.h"

#include <algorithm>

#include "ndarray/core/dense.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/promotion.h"
#include "ndarray/core/ready.h"
#include "ndarray/kernels/host/float_parts.h"

namespace dlbridge::nd {

namespace {

// Of several axes the result lies as x does.
bool lies_plain(const Tensor& x) noexcept { return is_host(x.dl.device) && (x.dl.ndim <= 1 || is_c_contiguous(x)); }
bool takes(const Tensor& x) noexcept {
  return lies_plain(x) && (dtype_of(x) == DType::kFloat32 || dtype_of(x) == DType::kFloat64);
}

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

// Two arrays as x lies.
Status split(DenseOp op, const Tensor& x, DType second_dtype, Tensor* parts, bool& done) {
  done = contains(kFloatSet, dtype_of(x));
  if (!done) return {};
  const Tensor* const inputs[] = {&x};
  const DType dtypes[] = {dtype_of(x), second_dtype};
  DenseArgs args{};
  args.op = op;
  return run_dense(args, inputs, dtypes, parts, "a split of floats");
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

// On a device: the exponents as floats, which say how far beyond every bound those are that floats do not hold.
Status scale_on_device(const Tensor& x, const Tensor& exponents, Tensor& out, bool& done) {
  const DType dtype = dtype_of(x);
  done = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  if (!done) return {};
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
  return split(DenseOp::kSplitWholes, x, dtype_of(x), parts, done);
}

Status scale_by_powers(const Tensor& x, const Tensor& exponents, Tensor& out, bool& done) {
  if (contains(kHalfSet, dtype_of(x))) {  // as NumPy: float32 holds it, and is rounded once
    Tensor wide, scaled;
    DLBRIDGE_TRY(copy_as(x, DType::kFloat32, CopyOrder::kKeep, wide));
    DLBRIDGE_TRY(scale_by_powers(wide, exponents, scaled, done));
    return done ? copy_as(scaled, dtype_of(x), CopyOrder::kKeep, out) : Status();
  }
  if (are_whole(x)) {
    Tensor floats;
    DLBRIDGE_TRY(copy_as(x, detail::float_for_integer(dtype_of(x)), CopyOrder::kKeep, floats));
    return scale_by_powers(floats, exponents, out, done);
  }
  const DType dtype = dtype_of(exponents);
  const bool are_exponents = contains(kIntSet | kBoolSet, dtype) && same_device(x.dl.device, exponents.dl.device);
  if (!is_host(x.dl.device) && are_exponents) return scale_on_device(x, exponents, out, done);
  done = takes(x) && is_host(exponents.dl.device) && (is_signed(dtype) || is_bool(dtype)) && same_shape(x, exponents);
  if (!done) return {};
  Tensor copy, dense;
  const Tensor *ready = nullptr, *numbers = nullptr;
  DLBRIDGE_TRY(ready_as(dtype == DType::kInt64 ? dtype : DType::kInt32, exponents, copy, ready));
  DLBRIDGE_TRY(ready_as(dtype_of(x), x, dense, numbers));
  DLBRIDGE_TRY(make_array(out, dtype_of(x), shape_of(x), x.dl.device));
  const Tensor* const used[] = {numbers};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  with_float(dtype_of(x), [&]<class T>(T) {
    if (dtype == DType::kInt64)
      host_kernels::scale_by_powers(elements<T>(*numbers), elements<std::int64_t>(*ready), x.size, elements<T>(out));
    else host_kernels::scale_by_powers(elements<T>(*numbers), elements<std::int32_t>(*ready), x.size, elements<T>(out));
  });
  return call.end(0, "ldexp");
}

Status find_spacings(const Tensor& x, Tensor& out, bool& done) {
  if (are_whole(x)) {
    Tensor floats;
    DLBRIDGE_TRY(copy_as(x, detail::float_for_integer(dtype_of(x)), CopyOrder::kKeep, floats));
    return find_spacings(floats, out, done);
  }
  const bool is_half = dtype_of(x) == DType::kFloat16;
  done = is_half ? lies_plain(x) : takes(x);
  if (!done) return {};
  Tensor dense;
  const Tensor* numbers = nullptr;
  DLBRIDGE_TRY(ready_as(dtype_of(x), x, dense, numbers));
  DLBRIDGE_TRY(make_array(out, dtype_of(x), shape_of(x), x.dl.device));
  const Tensor* const used[] = {numbers};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  const auto find = [&]<class T>(T) { host_kernels::find_spacings(elements<T>(*numbers), x.size, elements<T>(out)); };
  if (is_half) find(float16());
  else with_float(dtype_of(x), find);
  return call.end(0, "spacing");
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
