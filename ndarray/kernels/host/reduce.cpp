// Reductions on the host: picks the functor, casts what it cannot load or store itself.
#include "ndarray/kernels/host/reduce_loops.h"

#include <memory>
#include <new>

namespace dlbridge::nd::host_kernels {
namespace {

int run(const HostReduction& call) {
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
  const functors::ReduceRoute route = functors::route_of(args);
  const InnerLoop cast = route.casts ? cast_loop(args.in_dtype, route.load) : nullptr;
  if (route.casts && cast == nullptr) return kErrorUnsupported;
  if (!functors::casts_result(args, route))
    return run({args, route, cast, static_cast<char*>(args.out), args.kept_out_strides});

  const auto itemsize = static_cast<std::int64_t>(info(route.stored).itemsize);
  const std::unique_ptr<char[]> results(new (std::nothrow) char[static_cast<std::size_t>(args.kept_size * itemsize)]);
  if (results == nullptr) return kErrorMemory;
  std::int64_t strides[kLoopDims]{};
  std::int64_t step = itemsize;
  for (int d = 0; d < args.kept_ndim; ++d) {
    strides[d] = step;
    step *= args.kept_shape[d];
  }
  const int status = run({args, route, cast, results.get(), strides});
  return status != 0 ? status : elementwise(functors::result_cast(args, route.stored, results.get()));
}

}  // namespace dlbridge::nd::host_kernels
