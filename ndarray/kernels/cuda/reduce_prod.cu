// Products.
#include "ndarray/kernels/cuda/reduce.cuh"

namespace dlbridge::nd::cuda_kernels {

int reduce_prod(const CudaReduction& call) {
  return reduce_family<functors::Prod, functors::kSumSet, functors::kCastSet>(call);
}

}  // namespace dlbridge::nd::cuda_kernels
