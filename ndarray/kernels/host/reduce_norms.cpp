// Variances and norms on the host.
#include "ndarray/kernels/host/reduce_loops.h"

namespace dlbridge::nd::host_kernels {

int reduce_moments(const HostReduction& call) { return reduce_family<functors::Moments, kInexactSet>(call); }
int reduce_norms(const HostReduction& call) {
  switch (call.route.family) {
    case functors::ReduceFamily::kSumSquares: return reduce_family<functors::SumSquares, kInexactSet>(call);
    case functors::ReduceFamily::kSumAbs: return reduce_family<functors::SumAbs, kComplexSet>(call);
    default: return reduce_family<functors::MaxAbs, kComplexSet>(call);
  }
}

}  // namespace dlbridge::nd::host_kernels
