// Reductions along a contiguous dim, each kernel for rows of other lengths; reduce_plan.h chooses.
#pragma once

#include "ndarray/kernels/cuda/reduce_accumulators.cuh"
#include "ndarray/kernels/cuda/reduce_load.cuh"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kShortRowUnroll = 4;

struct ReduceBuffers {
  const char* in;
  char* out;
  void* partials;
  unsigned* tickets;
};

// A contiguous run, by the lanes of a group: single elements up to the first vector boundary and after the last.
template <class R>
__device__ inline void reduce_run(const R& functor, const char* in, std::int64_t length, int lane, int lanes,
                                  std::int64_t position, std::int64_t step, typename R::Acc& acc) {
  using In = typename R::In;
  constexpr int V = kVectorBytes / sizeof(In);
  constexpr int U = 4;
  constexpr int kTogether = V * U > 16 ? 1 : U;  // vectors in one batch
  const auto element = [&](std::int64_t i) {
    const In x =
        functors::prepare(load_element<In>(in + i * static_cast<std::int64_t>(sizeof(In)), true), functor.prep);
    functor.add(acc, x, position + i * step);
  };
  const auto misaligned = static_cast<int>(reinterpret_cast<std::uintptr_t>(in) % kVectorBytes / sizeof(In));
  const std::int64_t head = misaligned == 0 ? 0 : (V - misaligned < length ? V - misaligned : length);
  for (std::int64_t i = lane; i < head; i += lanes) element(i);
  const std::int64_t vectors = (length - head) / V;
  const char* const body = in + head * static_cast<std::int64_t>(sizeof(In));
  const std::int64_t body_position = position + head * step;
  // f(batch, number of its first vector among the U from v on)
  const auto each_batch = [&](std::int64_t v, auto f) {
    Words<kVectorBytes> raw[U];
#pragma unroll
    for (int u = 0; u < U; ++u) raw[u] = load_words<kVectorBytes>(body + (v + u * lanes) * kVectorBytes);
#pragma unroll
    for (int b = 0; b < U; b += kTogether) {
      In x[kTogether * V];
#pragma unroll
      for (int u = 0; u < kTogether; ++u) unpack<In, V>(raw[b + u], functor.prep, x + u * V);
      f(x, b);
    }
  };
  const auto add_batches = [&](std::int64_t from) {
    each_batch(from, [&](const auto& x, int b) {
      functor.template add_batch<kTogether * V>(
          acc, x, [=](int i) { return body_position + ((from + (b + i / V) * lanes) * V + i % V) * step; });
    });
  };
  std::int64_t v = lane;
  if constexpr (R::kFindsLater) {
    auto seen = acc.value;
    std::int64_t found = -1;
    for (; v + (U - 1) * lanes < vectors; v += U * lanes)
      each_batch(v, [&](const auto& x, int) { found = functor.improves(seen, x) ? v : found; });
    if (lanes >= static_cast<int>(kWarp) && !leads_warp(seen)) found = -1;
    if (found >= 0) add_batches(found);
  } else {
    for (; v + (U - 1) * lanes < vectors; v += U * lanes) add_batches(v);
  }
  Words<kVectorBytes> raw[U - 1];
#pragma unroll
  for (int u = 0; u < U - 1; ++u)
    if (v + u * lanes < vectors) raw[u] = load_words<kVectorBytes>(body + (v + u * lanes) * kVectorBytes);
#pragma unroll
  for (int u = 0; u < U - 1; ++u) {
    if (v + u * lanes >= vectors) break;
    In x[V];
    unpack<In, V>(raw[u], functor.prep, x);
    functor.template add_batch<V>(acc, x, [=](int i) { return body_position + ((v + u * lanes) * V + i) * step; });
  }
  for (std::int64_t i = head + vectors * V + lane; i < length; i += lanes) element(i);
}

template <class R>
__global__ void __launch_bounds__(kReduceThreads, kBlocksPerMultiprocessor)
    reduce_rows(const __grid_constant__ ReducePlan plan, const __grid_constant__ R functor,
                const __grid_constant__ ReduceBuffers buffers) {
  using Acc = typename R::Acc;
  const int log_lanes = plan.log_lanes_x + plan.log_lanes_y;
  const int lanes = 1 << log_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t block = blockIdx.x / static_cast<unsigned>(plan.splits);
  const int split = static_cast<int>(blockIdx.x % static_cast<unsigned>(plan.splits));
  const std::int64_t row = block * (kReduceThreads >> log_lanes) + (static_cast<int>(threadIdx.x) >> log_lanes);
  const bool active = row < plan.kept_size;
  Acc acc = functor.identity();
  std::int64_t in_offset = 0, out_offset = 0;
  if (active) {
    plan.kept.locate(row, in_offset, out_offset);
    const int lane_x = lane & ((1 << plan.log_lanes_x) - 1), lane_y = lane >> plan.log_lanes_x;
    const std::int64_t begin = split % plan.chunks * plan.chunk;
    const std::int64_t length = plan.chunk < plan.reduced_size - begin ? plan.chunk : plan.reduced_size - begin;
    const std::int64_t outer_begin = split / plan.chunks * plan.outer_chunk;
    const std::int64_t outer_end =
        outer_begin + plan.outer_chunk < plan.outer_size ? outer_begin + plan.outer_chunk : plan.outer_size;
    const char* const in = buffers.in + in_offset + begin * static_cast<std::int64_t>(sizeof(typename R::In));
    for (std::int64_t o = outer_begin + lane_y; o < outer_end; o += std::int64_t{1} << plan.log_lanes_y) {
      std::int64_t offset, position;
      plan.reduced.locate(o, offset, position);
      reduce_run(functor, in + offset, length, lane_x, 1 << plan.log_lanes_x, position + begin * plan.step, plan.step,
                 acc);
    }
  }
  merge_lanes(functor, acc, lanes);
  if (plan.splits == 1) {
    if (active && lane == 0) functor.store(acc, buffers.out + out_offset);
    return;
  }
  // A split row is a whole block's.
  Acc* const partials = static_cast<Acc*>(buffers.partials) + block * plan.splits;
  if (threadIdx.x == 0) partials[split] = acc;
  if (!draws_last_ticket(buffers.tickets + block, plan.splits)) return;
  acc = functor.identity();
  for (int s = static_cast<int>(threadIdx.x); s < plan.splits; s += kReduceThreads)
    functor.combine(acc, load_partial(partials + s));
  merge_lanes(functor, acc, kReduceThreads);
  if (threadIdx.x == 0) functor.store(acc, buffers.out + out_offset);
}

// Rows of at most one vector a lane, all aligned: four rows a group in flight.
template <class R>
__global__ void __launch_bounds__(kReduceThreads, kBlocksPerMultiprocessor)
    reduce_short_rows(const __grid_constant__ ReducePlan plan, const __grid_constant__ R functor,
                      const __grid_constant__ ReduceBuffers buffers) {
  using In = typename R::In;
  constexpr int V = kVectorBytes / sizeof(In);
  constexpr int U = kShortRowUnroll;
  const int lanes = 1 << plan.log_lanes_x;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int groups = kReduceThreads >> plan.log_lanes_x;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (groups * U) + (static_cast<int>(threadIdx.x) >> plan.log_lanes_x);
  const bool holds = lane * V < plan.reduced_size;
  Words<kVectorBytes> raw[U];
  std::int64_t out_offsets[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const std::int64_t row = first + u * groups;
    std::int64_t offset;
    plan.kept.locate(row < plan.kept_size ? row : plan.kept_size - 1, offset, out_offsets[u]);
    raw[u] = load_words<kVectorBytes>(buffers.in + offset + (holds ? lane : 0) * kVectorBytes);
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    typename R::Acc acc = functor.identity();
    if (holds) {
      In x[V];
      unpack<In, V>(raw[u], functor.prep, x);
      functor.template add_batch<V>(acc, x, [=](int i) { return (lane * V + i) * plan.step; });
    }
    merge_lanes(functor, acc, lanes);
    if (lane == 0 && first + u * groups < plan.kept_size) functor.store(acc, buffers.out + out_offsets[u]);
  }
}

// A row a block, all of it in flight at once.
template <class R>
__global__ void __launch_bounds__(kReduceThreads, kBlocksPerMultiprocessor)
    reduce_block_rows(const __grid_constant__ ReducePlan plan, const __grid_constant__ R functor,
                      const __grid_constant__ ReduceBuffers buffers) {
  using In = typename R::In;
  constexpr int V = kVectorBytes / sizeof(In), U = kTileVectors;
  const int thread = static_cast<int>(threadIdx.x), vectors = static_cast<int>(plan.reduced_size) / V;
  std::int64_t in_offset, out_offset;
  plan.kept.locate(blockIdx.x, in_offset, out_offset);
  const char* const in = buffers.in + in_offset;
  Words<kVectorBytes> raw[U];
#pragma unroll
  for (int u = 0; u < U; ++u)
    if (const int v = thread + u * kReduceThreads; v < vectors)
      raw[u] = load_words<kVectorBytes>(in + v * kVectorBytes);
  typename R::Acc acc = functor.identity();
  In x[V];
  const auto add_vector = [&](int u) {
    unpack<In, V>(raw[u], functor.prep, x);
    functor.template add_batch<V>(
        acc, x, [&](int i) { return std::int64_t{(thread + u * kReduceThreads) * V + i} * plan.step; });
  };
  if constexpr (R::kFindsLater) {
    auto seen = acc.value;
    int found = -1;
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (thread + u * kReduceThreads >= vectors) break;
      unpack<In, V>(raw[u], functor.prep, x);
      found = functor.improves(seen, x) ? u : found;
    }
    if (!leads_warp(seen)) found = -1;
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (u == found) add_vector(u);
  } else {
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (thread + u * kReduceThreads < vectors) add_vector(u);
  }
  merge_lanes(functor, acc, kReduceThreads);
  if (thread == 0) functor.store(acc, buffers.out + out_offset);
}

// The tile in shared memory: 16 bytes are left out after every 128, so that rows of such lengths do not begin in the
// same bank.
template <class In>
__device__ inline int tile_slot(int element) {
  constexpr int kSize = sizeof(In), kLine = 128 / kSize;
  return element + element / kLine * (kVectorBytes / kSize);
}

// Rows one after the other: a block brings some of them to shared memory as they lie, whole vectors at a time, whatever
// the length of a row; groups of lanes reduce them from there.
template <class R>
__global__ void __launch_bounds__(kReduceThreads, kBlocksPerMultiprocessor)
    reduce_tiles(const __grid_constant__ ReducePlan plan, const __grid_constant__ R functor,
                 const __grid_constant__ ReduceBuffers buffers) {
  using In = typename R::In;
  constexpr int kVector = kVectorBytes / sizeof(In), kBatch = 4;
  __shared__ uint4 tile[kTileVectors * kReduceThreads / 8 * 9];
  In* const staged = reinterpret_cast<In*>(tile);
  const int thread = static_cast<int>(threadIdx.x), length = static_cast<int>(plan.reduced_size);
  const std::int64_t first = blockIdx.x * plan.chunk;
  const auto rows = static_cast<int>(plan.chunk < plan.kept_size - first ? plan.chunk : plan.kept_size - first);
  const int elements = rows * length, vectors = elements / kVector;
  const In* const in = reinterpret_cast<const In*>(buffers.in) + first * length;
  uint4 raw[kTileVectors];
#pragma unroll
  for (int u = 0; u < kTileVectors; ++u)
    if (const int v = thread + u * kReduceThreads; v < vectors) raw[u] = __ldg(reinterpret_cast<const uint4*>(in) + v);
#pragma unroll
  for (int u = 0; u < kTileVectors; ++u)
    if (const int v = thread + u * kReduceThreads; v < vectors) tile[v + v / 8] = raw[u];
  if (const int left = vectors * kVector + thread; left < elements) staged[tile_slot<In>(left)] = in[left];
  __syncthreads();

  const int lanes = 1 << plan.log_lanes_x, groups = kReduceThreads >> plan.log_lanes_x;
  const int lane = thread & (lanes - 1);
  for (int base = 0; base < rows; base += groups) {  // the same for all threads: they merge together
    const int row = base + (thread >> plan.log_lanes_x);
    typename R::Acc acc = functor.identity();
    if (row < rows) {
      const auto element = [&](int i) {
        return functors::prepare(staged[tile_slot<In>(row * length + i)], functor.prep);
      };
      const auto load = [&](int i, In(&x)[kBatch]) {
#pragma unroll
        for (int k = 0; k < kBatch; ++k) x[k] = element(i + k * lanes);
      };
      const auto add_batch = [&](int i, const In(&x)[kBatch]) {
        functor.template add_batch<kBatch>(acc, x, [=, &plan](int k) { return (i + k * lanes) * plan.step; });
      };
      int i = lane;
      In x[kBatch];
      if constexpr (R::kFindsLater) {
        auto seen = acc.value;
        int found = -1;
        for (; i + (kBatch - 1) * lanes < length; i += kBatch * lanes) {
          load(i, x);
          found = functor.improves(seen, x) ? i : found;
        }
        if (lanes >= static_cast<int>(kWarp) && !leads_warp(seen)) found = -1;
        if (found >= 0) {
          load(found, x);
          add_batch(found, x);
        }
      } else {
        for (; i + (kBatch - 1) * lanes < length; i += kBatch * lanes) {
          load(i, x);
          add_batch(i, x);
        }
      }
      for (; i < length; i += lanes) functor.add(acc, element(i), i * plan.step);
    }
    merge_lanes(functor, acc, lanes);
    if (lane == 0 && row < rows) functor.store(acc, buffers.out + (first + row) * plan.kept.second[0]);
  }
}

}  // namespace dlbridge::nd::cuda_kernels
