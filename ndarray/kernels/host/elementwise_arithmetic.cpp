#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {

InnerLoop find_arithmetic_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_op_loop<ArithmeticOps, kAllSet>(op, compute)) return loop;
  return find_op_loop<DivisionOps, kBoolSet | kRealSet>(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
