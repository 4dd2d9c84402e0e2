#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {
const Kernels* find_extrema(Op op, DType compute) noexcept { return find_op_kernels<ExtremaOps, kAllSet>(op, compute); }
}  // namespace dlbridge::nd::cuda_kernels
