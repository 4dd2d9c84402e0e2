// Variances and norms on the host.
#include "ndarray/kernels/host/reduce_loops.h"

namespace dlbridge::nd::host_kernels {

int reduce_moments(const HostReduction& call) { return reduce_family<functors::Moments, kInexactSet>(call); }
int reduce_sum_squares(const HostReduction& call) { return reduce_family<functors::SumSquares, kInexactSet>(call); }

}  // namespace dlbridge::nd::host_kernels
