// Sums and means.
#include "ndarray/kernels/cuda/reduce.cuh"

namespace dlbridge::nd::cuda_kernels {

int reduce_sum(const CudaReduction& call) {
  return reduce_family<functors::Sum, functors::kSumSet, functors::kCastSet>(call);
}

}  // namespace dlbridge::nd::cuda_kernels
