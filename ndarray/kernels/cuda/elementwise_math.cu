#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {
const Kernels* find_math(Op op, DType compute) noexcept { return find_op_kernels<MathOps, kFloatSet>(op, compute); }
}  // namespace dlbridge::nd::cuda_kernels
