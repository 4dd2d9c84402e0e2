// Functions of elements that lie side by side, in one pass, on any device: see DenseOp.
#pragma once

#include <optional>

#include "ndarray/core/array.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

// One kernel: `outs`, of `dtypes`, get the shape that the inputs broadcast to and the layout that these have. What lies
// otherwise is copied first. Of `args` the operation, its numbers and its flag are given; the inputs have one dtype, or
// become `compute`.
Status run_dense(DenseArgs args, std::span<const Tensor* const> inputs, std::span<const DType> dtypes, Tensor* outs,
                 const char* what, std::optional<DType> compute = {});

// Where |x - y| <= absolute + relative * |y| and y is finite, or x == y, or with equal_nan both are NaN. As in
// positions.h, `done` is false for operands that are no floats or complex numbers of one dtype and device, nor on the
// host numbers that become float32 or float64.
Status is_close(const Tensor& x, const Tensor& y, double relative, double absolute, bool equal_nan, Tensor& out,
                bool& done);
// floor_divide and remainder; `done` is false for operands that are no numbers of one dtype and device.
Status divide_with_rest(const Tensor& x, const Tensor& y, Tensor (&parts)[2], bool& done);

}  // namespace dlbridge::nd
