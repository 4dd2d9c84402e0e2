// Reductions across a contiguous kept dim, and of elements that lie anyhow: a thread goes down columns of its own.
#pragma once

#include <type_traits>

#include "ndarray/kernels/cuda/reduce_rows.cuh"

namespace dlbridge::nd::cuda_kernels {

// Merges along the reduced threads; those of the first get the result. Every thread of the block calls it.
template <int V, class R>
__device__ inline void merge_columns(const R& functor, typename R::Acc (&acc)[V], int x, int y, int columns, int rows) {
  using Acc = typename R::Acc;
  extern __shared__ uint4 shared[];
  Acc* const storage = reinterpret_cast<Acc*>(shared);
  for (int half = rows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y >= half && y < 2 * half)
      for (int v = 0; v < V; ++v) storage[(v * half + y - half) * columns + x] = acc[v];
    __syncthreads();
    if (y < half)
      for (int v = 0; v < V; ++v) functor.combine(acc[v], storage[(v * half + y) * columns + x]);
  }
}

template <class R, int V, int U, class Loader>
__global__ void __launch_bounds__(kReduceThreads, kBlocksPerMultiprocessor)
    reduce_columns(const __grid_constant__ ReducePlan plan, const __grid_constant__ R functor,
                   const __grid_constant__ ReduceBuffers buffers, Loader loader) {
  using In = typename R::In;
  using Acc = typename R::Acc;
  const int thread = static_cast<int>(threadIdx.x);
  const int rows = 1 << plan.log_lanes_y;
  const int y = plan.rows_fast ? thread & (rows - 1) : thread / plan.columns;
  const int x = plan.rows_fast ? thread >> plan.log_lanes_y : thread - y * plan.columns;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * plan.columns + x;
  const bool active = column < plan.kept_size;
  const std::int64_t begin = blockIdx.y * plan.chunk;
  const std::int64_t end = begin + plan.chunk < plan.reduced_size ? begin + plan.chunk : plan.reduced_size;
  Acc acc[V];
#pragma unroll
  for (int v = 0; v < V; ++v) acc[v] = functor.identity();
  std::int64_t in_offset = 0, out_offset = 0;
  if (active) {
    plan.kept.locate(column, in_offset, out_offset);
    const char* const in = buffers.in + in_offset;
    const auto position_of = [&plan](std::int64_t r) {
      std::int64_t unused, position;
      plan.reduced.locate(r, unused, position);
      return position;
    };
    // in_line: there is one reduced dim, so that no row's place has to be divided up.
    const auto reduce = [&](auto in_line) {
      In values[U][V], batch[U];
      const auto load = [&](std::int64_t r, auto whole) {  // unless it is whole, rows past the end read the last one
        const char* p[U];
        if constexpr (in_line && whole) {
          const char* at = in + r * plan.reduced.first[0];
#pragma unroll
          for (int u = 0; u < U; ++u, at += rows * plan.reduced.first[0]) p[u] = at;
        } else {
#pragma unroll
          for (int u = 0; u < U; ++u) {
            std::int64_t offset, unused;
            plan.reduced.locate(whole || r + u * rows < end ? r + u * rows : end - 1, offset, unused);
            p[u] = in + offset;
          }
        }
        loader.load(p, functor.prep, plan.aligned, values);
      };
      const auto column = [&](int v) {
#pragma unroll
        for (int u = 0; u < U; ++u) batch[u] = values[u][v];
      };
      const auto add_column = [&](int v, std::int64_t r) {
        column(v);
        functor.template add_batch<U>(acc[v], batch, [&](int u) { return position_of(r + u * rows); });
      };
      constexpr std::true_type kWhole;
      std::int64_t r = begin + y;
      if constexpr (R::kFindsLater) {
        if (functor.ascending) {
          decltype(acc[0].value) seen[V];
          int found[V];
#pragma unroll
          for (int v = 0; v < V; ++v) seen[v] = acc[v].value, found[v] = -1;
          for (int turn = 0; r + (U - 1) * rows < end; r += U * rows, ++turn) {
            load(r, kWhole);
#pragma unroll
            for (int v = 0; v < V; ++v) {
              column(v);
              found[v] = functor.improves(seen[v], batch) ? turn : found[v];
            }
          }
#pragma unroll
          for (int v = 0; v < V; ++v) {
            if (found[v] < 0) continue;
            const std::int64_t from = begin + y + std::int64_t{found[v]} * (U * rows);
            load(from, kWhole);
            add_column(v, from);
          }
        }
      }
      for (; r + (U - 1) * rows < end; r += U * rows) {
        load(r, kWhole);
#pragma unroll
        for (int v = 0; v < V; ++v) add_column(v, r);
      }
      if (r >= end) return;
      load(r, std::false_type{});
#pragma unroll
      for (int v = 0; v < V; ++v)
#pragma unroll
        for (int u = 0; u < U; ++u)
          if (r + u * rows < end) functor.add(acc[v], values[u][v], position_of(r + u * rows));
    };
    constexpr std::bool_constant<sizeof(In) <= 8> kInLine;  // wider elements wait for memory
    if (kInLine && plan.reduced.ndim == 1) reduce(kInLine);
    else reduce(std::false_type{});
  }
  merge_columns<V>(functor, acc, x, y, plan.columns, rows);
  if (plan.splits > 1) {
    Acc* const partials = static_cast<Acc*>(buffers.partials);
    const auto partial = [&](std::int64_t split) { return partials + (split * plan.kept_size + column) * V; };
    if (active && y == 0)
      for (int v = 0; v < V; ++v) partial(blockIdx.y)[v] = acc[v];
    if (!draws_last_ticket(buffers.tickets + blockIdx.x, plan.splits)) return;
#pragma unroll
    for (int v = 0; v < V; ++v) acc[v] = functor.identity();
    if (active)
      for (int s = y; s < plan.splits; s += rows)
#pragma unroll
        for (int v = 0; v < V; ++v) functor.combine(acc[v], load_partial(partial(s) + v));
    merge_columns<V>(functor, acc, x, y, plan.columns, rows);
  }
  if (active && y == 0)
#pragma unroll
    for (int v = 0; v < V; ++v) functor.store(acc[v], buffers.out + out_offset + v * plan.step);
}

}  // namespace dlbridge::nd::cuda_kernels
