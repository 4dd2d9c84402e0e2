// max, min and their positions on the host.
#include "ndarray/kernels/host/reduce_loops.h"

namespace dlbridge::nd::host_kernels {

int reduce_extreme(const HostReduction& call) { return reduce_family<Extreme, kNumericSet>(call); }
int reduce_arg_extreme(const HostReduction& call) {
  if (call.args.in_dtype == DType::kBool) return Reducer<functors::ArgExtreme<bool>>(call).run();
  return reduce_family<functors::ArgExtreme, kNumericSet>(call);
}

}  // namespace dlbridge::nd::host_kernels
