// The iteration space of an elementwise call: dims merged and sorted, as the kernels take it.
#pragma once

#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/kernel_api.h"

namespace dlbridge::nd {

inline constexpr int kMaxInputs = kMaxOperands - 1;

// Shape that `inputs` (null: a scalar) broadcast to.
Status broadcast_shapes(std::span<const Tensor* const> inputs, std::int64_t (&shape)[kMaxDims], int& ndim);

// Which axis lies innermost, second, … in memory, as the inputs have them (NumPy's order 'K'): the layout of a new
// output. C order where the inputs disagree. Returns true where that is plain C order.
bool memory_order(std::span<const Tensor* const> inputs, Dims shape, std::int8_t (&axes)[kMaxDims]);

// The general loop over many more dims than a kernel takes: the outer ones that are left are walked by the caller.
struct LoopPlan {
  int outer_ndim = 0;  // dims beyond kLoopDims, outermost last
  std::int64_t outer_shape[kMaxDims];
  std::int64_t outer_strides[kMaxOperands][kMaxDims];  // bytes
};

// Fills ndim, shape, strides, data, size and contiguous of `args`. operands[0] is the output; null: a scalar, whose bit
// in scalar_mask is set. The inputs broadcast to the output's shape; dtypes are set already.
void plan_loop(std::span<const Tensor* const> operands, ElementwiseArgs& args, LoopPlan& plan);

}  // namespace dlbridge::nd
