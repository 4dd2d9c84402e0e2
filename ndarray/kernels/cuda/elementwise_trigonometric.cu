#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {
const Kernels* find_trigonometric(Op op, DType compute) noexcept {
  return find_op_kernels<TrigonometricOps, kFloatSet>(op, compute);
}
}  // namespace dlbridge::nd::cuda_kernels
