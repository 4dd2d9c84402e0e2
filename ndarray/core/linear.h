// Matrix products.
#pragma once

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// a @ b with NumPy's rules: 1-D operands are a row and a column, leading axes broadcast. The dtypes promote.
Status matmul(const Tensor& a, const Tensor& b, Tensor& result);
// The cross-correlation of two vectors, at all places where they overlap, at as many of them as the longer one has
// elements, in the middle, or where they overlap completely. `done` is false for what has no loop: few factors on the
// host, of floats and of integers of 32 and 64 bits, have one.
enum class CorrelateMode { kFull, kSame, kValid };
Status correlate(const Tensor& a, const Tensor& v, CorrelateMode mode, Tensor& out, bool& done);
// The sums of products along the last axes, the others broadcasting.
Status vecdot(const Tensor& a, const Tensor& b, Tensor& result);

}  // namespace dlbridge::nd
