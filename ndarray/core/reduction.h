// Reductions and scans along axes.
#pragma once

#include <cstdint>
#include <optional>

#include "ndarray/core/array.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

using AxisMask = std::uint64_t;  // bit k: axis k is reduced

struct ReduceOptions {
  bool keepdims = false;
  std::optional<DType> dtype;   // of the accumulation and the result
  double correction = 0;        // var, std
  const Tensor* out = nullptr;  // takes the result (same_kind); `result` is left empty
};

// axes: all bits for the whole array. Arg reductions give the C-order position within the reduced axes, as int64.
// Refuses an empty reduction that has no identity (max, min, argmax, argmin).
Status reduce(ReduceOp op, const Tensor& x, AxisMask axes, const ReduceOptions& options, Tensor& result);

// Cumulative sum or product along an axis; integers and bool in 64 bits where no dtype is given.
Status scan(ScanOp op, const Tensor& x, int axis, std::optional<DType> dtype, Tensor& result);

}  // namespace dlbridge::nd
