#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {
const Kernels* find_logic_integer(Op op, DType compute) noexcept {
  return find_op_kernels<LogicOps, kBoolSet | kIntSet>(op, compute);
}
}  // namespace dlbridge::nd::cuda_kernels
