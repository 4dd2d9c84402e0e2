#include "ndarray/core/rearrange.h"

#include <algorithm>
#include <string>

#include "dlbridge/dims.h"
#include "ndarray/core/copy.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/join.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/views.h"

namespace dlbridge::nd {

namespace {

// False where the dims beside rows and columns are more than a kernel walks.
bool fill_dims(const Tensor& x, TriangleArgs& args) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  const int ndim = x.dl.ndim;
  for (int d = 0; d < ndim; ++d) {
    shape[d] = x.dl.shape[ndim - 1 - d];
    strides[d] = x.dl.strides[ndim - 1 - d] * x.itemsize();
  }
  std::int64_t* others = strides + 2;
  args.ndim = 2 + merge_dims(shape + 2, ndim - 2, &others, 1);
  if (args.ndim > kLoopDims) return false;
  std::copy_n(shape, args.ndim, args.shape);
  std::copy_n(strides, args.ndim, args.strides);
  return true;
}

// The part of an array that has `count` places of an axis, from `first` on.
Status part_of(const Tensor& x, std::size_t axis, std::int64_t first, std::int64_t count, Tensor& view) {
  std::int64_t shape[kMaxDims];
  std::copy_n(x.dl.shape, x.dl.ndim, shape);
  shape[axis] = count;
  const auto ndim = static_cast<std::size_t>(x.dl.ndim);
  return make_view(x, {shape, ndim}, {x.dl.strides, ndim}, first * x.dl.strides[axis], view);
}

// Block by block: each axis that moves, from `axis` on, splits the arrays in two.
Status copy_rolled(const Tensor& out, const Tensor& x, std::span<const std::int64_t> steps, std::size_t axis) {
  while (axis < steps.size() && steps[axis] == 0) ++axis;
  if (axis == steps.size()) return copy_into(out, {&x, {}}, Casting::kNo);
  const std::int64_t step = steps[axis], rest = x.dl.shape[axis] - step;
  Tensor from, to;
  DLBRIDGE_TRY(part_of(x, axis, 0, rest, from));
  DLBRIDGE_TRY(part_of(out, axis, step, rest, to));
  DLBRIDGE_TRY(copy_rolled(to, from, steps, axis + 1));
  Tensor last, first;
  DLBRIDGE_TRY(part_of(x, axis, rest, step, last));
  DLBRIDGE_TRY(part_of(out, axis, 0, step, first));
  return copy_rolled(first, last, steps, axis + 1);
}

// Along one axis: its end before its beginning.
Status roll_axis(const Tensor& x, std::size_t axis, std::int64_t step, Tensor& out) {
  Tensor end, begin;
  const std::int64_t rest = x.dl.shape[axis] - step;
  DLBRIDGE_TRY(part_of(x, axis, rest, step, end));
  DLBRIDGE_TRY(part_of(x, axis, 0, rest, begin));
  const Tensor* const parts[] = {&end, &begin};
  return concatenate(parts, static_cast<int>(axis), {}, out);
}

}  // namespace

Status triangle(const Tensor& given, std::int64_t diagonal, bool lower, Tensor& out) {
  const Tensor* x = &given;
  Tensor square, dense;
  if (x->dl.ndim == 1) {
    const std::int64_t shape[2] = {x->size, x->size};
    DLBRIDGE_TRY(broadcast_view(given, shape, square));
    x = &square;
  }
  Tensor result;
  DLBRIDGE_TRY(make_array(result, dtype_of(*x), shape_of(*x), x->dl.device));
  if (result.size != 0) {
    TriangleArgs args{};
    if (!fill_dims(*x, args)) {
      DLBRIDGE_TRY(copy_as(*x, dtype_of(*x), CopyOrder::kC, dense));
      x = &dense;
      fill_dims(*x, args);
    }
    args.itemsize = static_cast<int>(x->itemsize());
    args.lower = lower;
    args.diagonal = std::clamp(diagonal, -args.shape[1], args.shape[0]);
    args.size = result.size;
    args.in = x->dl.data;
    args.out = result.dl.data;
    const Tensor* const used[] = {x, &result};
    KernelCall call(x->dl.device, used);
    DLBRIDGE_TRY(call.begin());
    args.stream = call.stream();
    DLBRIDGE_TRY(call.end(call.backend().triangle(args), lower ? "tril()" : "triu()"));
  }
  out = std::move(result);
  return {};
}

constexpr std::int64_t kRolledAtOnce =
    1 << 18;  // elements of a device: fewer take less time than the launches of blocks

Status roll(const Tensor& x, std::span<const std::int64_t> steps, Tensor& out) {
  const auto moves = [](std::int64_t step) { return step != 0; };
  if (const auto axis = std::ranges::find_if(steps, moves); std::ranges::count_if(steps, moves) == 1)
    return roll_axis(x, static_cast<std::size_t>(axis - steps.begin()), *axis, out);
  if (!is_host(x.dl.device) && x.size <= kRolledAtOnce) {  // padded by its other end, and cut to its extents
    std::int64_t after[kMaxDims];
    std::ranges::transform(steps, after, std::negate());
    bool done = false;
    DLBRIDGE_TRY(pad(x, PadMode::kWrap, steps, {after, steps.size()}, Scalar::of_int(0), out, done));
    if (done) return {};
  }
  Tensor result;
  std::int8_t axes[kMaxDims];
  const Tensor* const parts[] = {&x};
  if (is_host(x.dl.device) && !copied_order(parts, shape_of(x), axes))
    DLBRIDGE_TRY(make_array_as(result, dtype_of(x), shape_of(x), {axes, steps.size()}, x.dl.device));
  else DLBRIDGE_TRY(make_array(result, dtype_of(x), shape_of(x), x.dl.device));
  if (result.size != 0) DLBRIDGE_TRY(copy_rolled(result, x, steps, 0));
  out = std::move(result);
  return {};
}

Status pad(const Tensor& x, PadMode mode, Dims before, Dims after, const Scalar& value, Tensor& out, bool& done) {
  PadArgs args{};
  const auto ndim = static_cast<std::size_t>(x.dl.ndim);
  done = x.dl.ndim > 0 && x.dl.ndim <= kLoopDims && before.size() == ndim && after.size() == ndim && is_loadable(x) &&
         write_scalar(value, dtype_of(x), args.value).ok();
  if (!done) return {};
  std::int64_t shape[kMaxDims];
  for (std::size_t axis = 0; axis < ndim; ++axis) {
    const std::size_t d = ndim - 1 - axis;
    if (__builtin_add_overflow(before[axis], x.dl.shape[axis], &shape[axis]) ||
        __builtin_add_overflow(shape[axis], after[axis], &shape[axis]))
      return overflow("the extent of axis " + std::to_string(axis) + " needs more than 63 bits");
    args.shape[d] = shape[axis];
    args.before[d] = before[axis];
    args.extent[d] = x.dl.shape[axis];
    args.strides[d] = x.dl.strides[axis] * x.itemsize();
  }
  DLBRIDGE_TRY(make_array(out, dtype_of(x), {shape, ndim}, x.dl.device));
  if (out.size == 0) return {};
  args.mode = mode;
  args.itemsize = static_cast<int>(x.itemsize());
  args.ndim = x.dl.ndim;
  args.size = out.size;
  args.in = x.dl.data;
  args.out = out.dl.data;
  const Tensor* const used[] = {&x, &out};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end(call.backend().pad(args), "pad");
}

}  // namespace dlbridge::nd
