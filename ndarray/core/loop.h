// The iteration space of an elementwise call: dims merged and sorted, as the kernels take it.
#pragma once

#include <span>

#include "ndarray/core/array.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

inline constexpr int kMaxInputs = kMaxOperands - 1;

// The general loop over many more dims than a kernel takes: the outer ones that are left are walked by the caller.
struct OuterLoop {
  int ndim = 0;  // dims beyond kLoopDims, outermost last
  std::int64_t shape[kMaxDims];
  std::int64_t strides[kMaxOperands][kMaxDims];  // bytes
};

// Fills ndim, shape, strides, data, size and contiguous of `args`. operands[0] is the output; null: a scalar, whose bit
// in scalar_mask is set. The inputs broadcast to the output's shape; dtypes are set already.
void plan_loop(std::span<const Tensor* const> operands, ElementwiseArgs& args, OuterLoop& outer);

}  // namespace dlbridge::nd
