#include "ndarray/core/loop.h"

#include <algorithm>

namespace dlbridge::nd {

namespace {

struct Walk {
  int ndim = 0;
  std::int64_t shape[kMaxDims];
  std::int64_t strides[kMaxOperands][kMaxDims];  // bytes, innermost first
};

// Drops the axes of extent 1 and turns those where the output runs backwards.
void collect_axes(std::span<const Tensor* const> operands, ElementwiseArgs& args, Walk& walk) {
  const Tensor& out = *operands[0];
  const int n = out.dl.ndim;
  for (int axis = n - 1; axis >= 0; --axis) {
    const std::int64_t extent = out.dl.shape[axis];
    if (extent == 1) continue;
    const bool backwards = out.dl.strides[axis] < 0;
    walk.shape[walk.ndim] = extent;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] == nullptr) {
        walk.strides[k][walk.ndim] = 0;
        continue;
      }
      std::int64_t stride = broadcast_stride(*operands[k], axis, n) * operands[k]->itemsize();
      if (backwards) {
        args.data[k] = static_cast<char*>(args.data[k]) + stride * (extent - 1);
        stride = -stride;
      }
      walk.strides[k][walk.ndim] = stride;
    }
    ++walk.ndim;
  }
}

bool all_dense(std::span<const Tensor* const> operands) noexcept {
  const Tensor& out = *operands[0];
  for (const Tensor* t : operands)
    if (t != nullptr && (t->dl.ndim != out.dl.ndim || t->size != out.size || !is_c_contiguous(*t))) return false;
  return true;
}

}  // namespace

void plan_loop(std::span<const Tensor* const> operands, ElementwiseArgs& args, OuterLoop& outer) {
  const Tensor& out = *operands[0];
  args.operands = static_cast<std::uint8_t>(operands.size());
  args.size = out.size;
  for (std::size_t k = 0; k < operands.size(); ++k)
    args.data[k] = operands[k] == nullptr ? nullptr : operands[k]->dl.data;
  if (all_dense(operands)) [[likely]] {
    args.ndim = out.size == 1 ? 0 : 1;
    args.contiguous = true;
    args.shape[0] = out.size;
    for (std::size_t k = 0; k < operands.size(); ++k)
      args.strides[k][0] = operands[k] == nullptr ? 0 : operands[k]->itemsize();
    return;
  }
  Walk walk;
  collect_axes(operands, args, walk);
  std::int64_t* rows[kMaxOperands];
  for (std::size_t k = 0; k < operands.size(); ++k) rows[k] = walk.strides[k];
  sort_dims(walk.shape, walk.ndim, rows, args.operands, 0);
  walk.ndim = merge_dims(walk.shape, walk.ndim, rows, args.operands);
  args.ndim = std::min(walk.ndim, kLoopDims);
  args.size = 1;
  for (int d = 0; d < args.ndim; ++d) args.size *= args.shape[d] = walk.shape[d];
  args.contiguous = walk.ndim <= 1;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    std::copy_n(walk.strides[k], args.ndim, args.strides[k]);
    if (operands[k] != nullptr && walk.ndim == 1 && walk.strides[k][0] != operands[k]->itemsize())
      args.contiguous = false;
  }
  outer.ndim = walk.ndim - args.ndim;
  std::copy_n(walk.shape + args.ndim, outer.ndim, outer.shape);
  for (std::size_t k = 0; k < operands.size(); ++k)
    std::copy_n(walk.strides[k] + args.ndim, outer.ndim, outer.strides[k]);
}

}  // namespace dlbridge::nd
