// Matrix products.
#pragma once

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// a @ b with NumPy's rules: 1-D operands are a row and a column, leading axes broadcast. The dtypes promote.
Status matmul(const Tensor& a, const Tensor& b, Tensor& result);
// On the host: the sums of products of the vector v with the parts of the vector a that it lies on, `count` of them,
// the first of which begins `before` places in front of a. `done` is false for dtypes that it has no loop for.
Status correlate(const Tensor& a, const Tensor& v, std::int64_t before, std::int64_t count, Tensor& out, bool& done);
// The sums of products along the last axes, the others broadcasting.
Status vecdot(const Tensor& a, const Tensor& b, Tensor& result);

}  // namespace dlbridge::nd
