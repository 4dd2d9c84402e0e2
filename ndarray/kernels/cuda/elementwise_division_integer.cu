#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {
const Kernels* find_division_integer(Op op, DType compute) noexcept {
  return find_op_kernels<DivisionOps, kIntSet>(op, compute);
}
}  // namespace dlbridge::nd::cuda_kernels
