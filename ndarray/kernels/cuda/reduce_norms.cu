// Counts, variances and norms.
#include "ndarray/kernels/cuda/reduce.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {
constexpr DTypeSet kCastingInexact = functors::kCastSet & kInexactSet;
}  // namespace

int reduce_count(const CudaReduction& call) {
  return functors::visit_count(call.route.load, [&]<class R>() { return launch_native<R>(call); });
}

int reduce_moments(const CudaReduction& call) {
  return reduce_family<functors::Moments, kInexactSet, kCastingInexact>(call);
}

int reduce_norms(const CudaReduction& call) {
  switch (call.route.family) {
    case functors::ReduceFamily::kSumSquares:
      return reduce_family<functors::SumSquares, kInexactSet, kCastingInexact>(call);
    case functors::ReduceFamily::kSumAbs: return reduce_family<functors::SumAbs, kComplexSet, kComplexSet>(call);
    default: return reduce_family<functors::MaxAbs, kComplexSet, kComplexSet>(call);
  }
}

}  // namespace dlbridge::nd::cuda_kernels
