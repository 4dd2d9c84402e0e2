#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {
const Kernels* find_trigonometric_complex(Op op, DType compute) noexcept {
  return find_op_kernels<TrigonometricOps, kComplexSet>(op, compute);
}
}  // namespace dlbridge::nd::cuda_kernels
