#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {
const Kernels* find_arithmetic_integer(Op op, DType compute) noexcept {
  return find_op_kernels<ArithmeticOps, kBoolSet | kIntSet>(op, compute);
}
}  // namespace dlbridge::nd::cuda_kernels
