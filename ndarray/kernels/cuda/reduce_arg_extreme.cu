// argmax and argmin.
#include "ndarray/kernels/cuda/reduce.cuh"

namespace dlbridge::nd::cuda_kernels {

int reduce_arg_extreme(const CudaReduction& call) { return reduce_family<functors::ArgExtreme, kNumericSet>(call); }

}  // namespace dlbridge::nd::cuda_kernels
