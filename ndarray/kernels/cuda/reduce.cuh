// The reductions of a functor: the kernels of reduce_rows.cuh and reduce_columns.cuh, launched as a plan
// (reduce_plan.h) says.
//
// A split row or column takes one launch: each block leaves a partial result and a ticket, and the block that draws the
// last ticket merges the partial results in their order, so that sums repeat bit by bit.
#pragma once

#include "ndarray/kernels/cuda/launch.cuh"
#include "ndarray/kernels/cuda/reduce_columns.cuh"
#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::cuda_kernels {

struct CudaReduction {
  ReduceArgs args;  // `out` and its strides take what the functor stores
  functors::ReduceRoute route;
};

template <class R>
constexpr ReduceTraits traits_of(const CudaReduction& call, const R& functor, bool casts) {
  constexpr int kSize = sizeof(typename R::In);
  return {casts ? info(call.args.in_dtype).itemsize : kSize, casts ? 1 : std::min(kVectorBytes / kSize, 8),
          casts ? 4 : 8, casts || (R::kFindsLater && !functor.ascending)};
}

// Room for partial results and tickets, the latter zeroed.
template <class Acc>
int prepare_split(const CudaReduction& call, const ReducePlan& plan, int vector, ReduceBuffers& buffers) {
  if (plan.splits == 1) return 0;
  const std::int64_t groups = plan.path == ReducePath::kRows ? plan.kept_size : plan.blocks();
  const std::size_t tickets = (static_cast<std::size_t>(groups) * sizeof(unsigned) + 15) / 16 * 16;
  const std::size_t partials = static_cast<std::size_t>(plan.kept_size * plan.splits * vector) * sizeof(Acc);
  char* const memory = static_cast<char*>(call.args.workspace.get(tickets + partials));
  if (memory == nullptr) return kErrorMemory;
  buffers.tickets = reinterpret_cast<unsigned*>(memory);
  buffers.partials = memory + tickets;
  return static_cast<int>(cudaMemsetAsync(memory, 0, tickets, stream_of(call.args.stream)));
}

template <class R, int V, int U, class Loader>
int launch_columns(const CudaReduction& call, const ReducePlan& plan, const R& functor, Loader loader,
                   ReduceBuffers buffers) {
  using Acc = typename R::Acc;
  if (const int status = prepare_split<Acc>(call, plan, V, buffers)) return status;
  const auto rows = std::size_t{1} << plan.log_lanes_y;
  const std::size_t shared = rows / 2 * static_cast<std::size_t>(plan.columns * V) * sizeof(Acc);
  return launch(reduce_columns<R, V, U, Loader>,
                dim3(static_cast<unsigned>(plan.blocks()), static_cast<unsigned>(plan.splits)), plan.threads(), shared,
                call.args.stream, plan, functor, buffers, loader);
}

// A functor over elements as they lie in memory.
template <class R>
int launch_native(const CudaReduction& call) {
  constexpr int kSize = sizeof(typename R::In);
  constexpr int kColumnVector = std::min(kVectorBytes / kSize, 8);
  const R functor{{functors::reduction_of(call.args, call.route)}};
  const ReducePlan plan = plan_reduction(call.args, traits_of(call, functor, false), multiprocessors());
  ReduceBuffers buffers{static_cast<const char*>(call.args.in), static_cast<char*>(call.args.out), nullptr, nullptr};
  switch (plan.path) {
    case ReducePath::kRows:
      if (const int status = prepare_split<typename R::Acc>(call, plan, 1, buffers)) return status;
      return launch(reduce_rows<R>, dim3(static_cast<unsigned>(plan.blocks())), kReduceThreads, 0, call.args.stream,
                    plan, functor, buffers);
    case ReducePath::kShortRows:
      return launch(reduce_short_rows<R>, dim3(static_cast<unsigned>(plan.blocks())), kReduceThreads, 0,
                    call.args.stream, plan, functor, buffers);
    case ReducePath::kBlockRows:
      return launch(reduce_block_rows<R>, dim3(static_cast<unsigned>(plan.blocks())), kReduceThreads, 0,
                    call.args.stream, plan, functor, buffers);
    case ReducePath::kTiles:
      return launch(reduce_tiles<R>, dim3(static_cast<unsigned>(plan.blocks())), kReduceThreads, 0, call.args.stream,
                    plan, functor, buffers);
    case ReducePath::kColumns:
      if constexpr (kColumnVector > 1)
        return launch_columns<R, kColumnVector, 4>(call, plan, functor, NativeLoader{}, buffers);
      [[fallthrough]];
    default: return launch_columns<R, 1, 8>(call, plan, functor, NativeLoader{}, buffers);
  }
}

// A functor over elements that are cast to its dtype on load.
template <class R>
int launch_casting(const CudaReduction& call) {
  const R functor{{functors::reduction_of(call.args, call.route)}};
  const ReducePlan plan = plan_reduction(call.args, traits_of(call, functor, true), multiprocessors());
  const ReduceBuffers buffers{static_cast<const char*>(call.args.in), static_cast<char*>(call.args.out), nullptr,
                              nullptr};
  return launch_columns<R, 1, 4>(call, plan, functor, CastLoader{call.args.in_dtype}, buffers);
}

// Each in the file of its name.
int reduce_sum(const CudaReduction& call);
int reduce_prod(const CudaReduction& call);
int reduce_extreme(const CudaReduction& call);
int reduce_arg_extreme(const CudaReduction& call);
int reduce_count(const CudaReduction& call);
int reduce_moments(const CudaReduction& call);
int reduce_norms(const CudaReduction& call);

template <template <class> class Functor, DTypeSet Native, DTypeSet Casting = 0>
int reduce_family(const CudaReduction& call) {
  if (call.route.casts)
    return functors::visit_functor<Functor, Casting>(call.route.load,
                                                     [&]<class R>() { return launch_casting<R>(call); });
  return functors::visit_functor<Functor, Native>(call.route.load, [&]<class R>() { return launch_native<R>(call); });
}

}  // namespace dlbridge::nd::cuda_kernels
