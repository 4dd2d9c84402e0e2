// max and min.
#include "ndarray/kernels/cuda/reduce.cuh"

namespace dlbridge::nd::cuda_kernels {

int reduce_extreme(const CudaReduction& call) {
  constexpr DTypeSet kCasting = bit(DType::kFloat32) | bit(DType::kFloat64);  // norms alone
  return reduce_family<functors::Extreme, kNumericSet, kCasting>(call);
}

}  // namespace dlbridge::nd::cuda_kernels
