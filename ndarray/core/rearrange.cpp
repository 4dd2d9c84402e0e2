#include "ndarray/core/rearrange.h"

#include <algorithm>

#include "dlbridge/dims.h"
#include "ndarray/core/copy.h"
#include "ndarray/core/elementwise.h"
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

// Block by block: each axis that moves, from `axis` on, splits the arrays in two.
Status copy_rolled(const Tensor& out, const Tensor& x, std::span<const std::int64_t> steps, std::size_t axis) {
  while (axis < steps.size() && steps[axis] == 0) ++axis;
  if (axis == steps.size()) return copy_into(out, {&x, {}}, Casting::kNo);
  const std::int64_t extent = x.dl.shape[axis], step = steps[axis];
  const auto part = [&](const Tensor& of, std::int64_t first, std::int64_t count, Tensor& view) {
    std::int64_t shape[kMaxDims];
    std::copy_n(of.dl.shape, of.dl.ndim, shape);
    shape[axis] = count;
    return make_view(of, {shape, steps.size()}, {of.dl.strides, steps.size()}, first * of.dl.strides[axis], view);
  };
  Tensor from, to;
  DLBRIDGE_TRY(part(x, 0, extent - step, from));
  DLBRIDGE_TRY(part(out, step, extent - step, to));
  DLBRIDGE_TRY(copy_rolled(to, from, steps, axis + 1));
  Tensor last, first;
  DLBRIDGE_TRY(part(x, extent - step, step, last));
  DLBRIDGE_TRY(part(out, 0, step, first));
  return copy_rolled(first, last, steps, axis + 1);
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

Status roll(const Tensor& x, std::span<const std::int64_t> steps, Tensor& out) {
  Tensor result;
  std::int8_t axes[kMaxDims];
  const Tensor* const parts[] = {&x};
  if (is_host(x.dl.device) && !memory_order(parts, shape_of(x), axes))
    DLBRIDGE_TRY(make_array_as(result, dtype_of(x), shape_of(x), {axes, steps.size()}, x.dl.device));
  else DLBRIDGE_TRY(make_array(result, dtype_of(x), shape_of(x), x.dl.device));
  if (result.size != 0) DLBRIDGE_TRY(copy_rolled(result, x, steps, 0));
  out = std::move(result);
  return {};
}

}  // namespace dlbridge::nd
