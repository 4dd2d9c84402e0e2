#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {

InnerLoop find_logic_loop(Op op, DType compute) noexcept {
  if (op == Op::kWhere) compute = carrier_of(compute);  // chooses bits
  if (const InnerLoop loop = find_op_loop<LogicOps, kAllSet>(op, compute)) return loop;
  if (const InnerLoop loop = find_op_loop<OpGroup<Op::kWhere>, kUnsignedSet | bit(DType::kComplex128)>(op, compute))
    return loop;
  return find_op_loop<OpGroup<Op::kMaximum, Op::kMinimum, Op::kFmax, Op::kFmin, Op::kClip>, kAllSet>(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
