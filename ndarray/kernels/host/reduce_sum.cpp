// Sums, means, products, counts, any and all on the host.
#include "ndarray/kernels/host/reduce_loops.h"

namespace dlbridge::nd::host_kernels {

int reduce_sum(const HostReduction& call) { return reduce_family<functors::Sum, functors::kSumSet>(call); }
int reduce_prod(const HostReduction& call) { return reduce_family<functors::Prod, functors::kSumSet>(call); }
int reduce_count(const HostReduction& call) {
  return functors::visit_count(call.route.load, [&]<class R>() { return Reducer<R>(call).run(); });
}
int reduce_truth(const HostReduction& call) {
  return functors::visit_bits<Truth>(call.route.load, [&]<class R>() { return Reducer<R>(call).run(); });
}

}  // namespace dlbridge::nd::host_kernels
