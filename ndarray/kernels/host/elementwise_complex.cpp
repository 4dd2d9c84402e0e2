#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {

InnerLoop find_complex_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_op_loop<MathOps, kComplexSet>(op, compute)) return loop;
  if (const InnerLoop loop = find_op_loop<DivisionOps, kComplexSet>(op, compute)) return loop;
  return find_op_loop<TrigonometricOps, kComplexSet>(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
