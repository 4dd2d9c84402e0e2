// Reductions on CUDA: picks the functor's family, and casts what it does not store itself.
#include "ndarray/kernels/cuda/reduce.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

int run(const CudaReduction& call) {
  using functors::ReduceFamily;
  switch (call.route.family) {
    case ReduceFamily::kSum: return reduce_sum(call);
    case ReduceFamily::kProd: return reduce_prod(call);
    case ReduceFamily::kExtreme: return reduce_extreme(call);
    case ReduceFamily::kArgExtreme: return reduce_arg_extreme(call);
    case ReduceFamily::kCount: return reduce_count(call);
    case ReduceFamily::kMoments: return reduce_moments(call);
    default: return reduce_norms(call);
  }
}

}  // namespace

int reduce(const ReduceArgs& args) {
  if (args.kept_size == 0) return 0;
  CudaReduction call{args, functors::route_of(args)};
  if (!functors::casts_result(args, call.route)) return run(call);

  std::int64_t step = info(call.route.stored).itemsize;
  call.args.out = args.workspace.get(static_cast<std::size_t>(args.kept_size * step));
  if (call.args.out == nullptr) return kErrorMemory;
  for (int d = 0; d < args.kept_ndim; ++d) {
    call.args.kept_out_strides[d] = step;
    step *= args.kept_shape[d];
  }
  const int status = run(call);
  return status != 0 ? status : elementwise(functors::result_cast(args, call.route.stored, call.args.out));
}

}  // namespace dlbridge::nd::cuda_kernels
