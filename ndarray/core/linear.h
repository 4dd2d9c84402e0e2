// Matrix products.
#pragma once

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// a @ b with NumPy's rules: 1-D operands are a row and a column, leading axes broadcast. The dtypes promote.
Status matmul(const Tensor& a, const Tensor& b, Tensor& result);
// The sums of products along the last axes, the others broadcasting.
Status vecdot(const Tensor& a, const Tensor& b, Tensor& result);

}  // namespace dlbridge::nd
