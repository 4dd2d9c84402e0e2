// y = matrix * x on CUDA, for any strides. Partial sums of a split depth are added in order: the same on every run.
#pragma once

#include "ndarray/kernels/functors/matmul_types.h"

namespace dlbridge::nd::cuda_kernels {

int matrix_vector(const MatrixVector& product, DType dtype, const Workspace& workspace, cudaStream_t stream);

}  // namespace dlbridge::nd::cuda_kernels
