#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {

InnerLoop find_math_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_op_loop<MathOps, kFloatSet>(op, compute)) return loop;
  return find_op_loop<TrigonometricOps, kFloatSet>(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
