// The reduction kernels: they drive the functors of functors/reduce.h as a plan (reduce_plan.h) says.
//
// A split row or column takes one launch: each block leaves a partial result and a ticket, and the block that draws the
// last ticket merges the partial results in their order, so that sums repeat bit by bit.
#pragma once

#include "ndarray/kernels/cuda/launch.cuh"
#include "ndarray/kernels/cuda/on_dtype.cuh"
#include "ndarray/kernels/cuda/reduce_plan.h"
#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::cuda_kernels {

inline constexpr unsigned kWarp = 32;
inline constexpr int kShortRowUnroll = 4;

// --- moving accumulators ---------------------------------------------------------------------------------------------

template <class Acc>
__device__ inline Acc shuffle_down(Acc value, int delta, int width) {
  constexpr int kWords = sizeof(Acc) / 4;
  static_assert(sizeof(Acc) % 4 == 0);
  unsigned words[kWords];
  memcpy(words, &value, sizeof(Acc));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(0xffffffffu, words[i], static_cast<unsigned>(delta), width);
  memcpy(&value, words, sizeof(Acc));
  return value;
}

// Another block's partial result: from L2, this multiprocessor's L1 may hold an older line.
template <class Acc>
__device__ inline Acc load_partial(const Acc* p) {
  constexpr int kWords = sizeof(Acc) / 4;
  unsigned words[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __ldcg(reinterpret_cast<const unsigned*>(p) + i);
  Acc value;
  memcpy(&value, words, sizeof(Acc));
  return value;
}

// Merges the accumulators of `lanes` neighbouring threads, a power of two up to a warp or the whole block; the first
// of them gets the result. Every thread of the block calls it.
template <class R>
__device__ inline void merge_lanes(const R& functor, typename R::Acc& acc, int lanes) {
  using Acc = typename R::Acc;
  const int width = lanes < static_cast<int>(kWarp) ? lanes : static_cast<int>(kWarp);
  for (int delta = width / 2; delta > 0; delta /= 2) {
    const Acc other = shuffle_down(acc, delta, width);
    functor.combine(acc, other);
  }
  if (lanes <= static_cast<int>(kWarp)) return;
  constexpr int kWarps = kReduceThreads / kWarp;
  __shared__ __align__(16) unsigned char storage[kWarps * sizeof(Acc)];
  Acc* const warps = reinterpret_cast<Acc*>(storage);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  __syncthreads();  // the storage may still be read from a merge before
  if (threadIdx.x % kWarp == 0) warps[warp] = acc;
  __syncthreads();
  if (warp != 0) return;
  acc = threadIdx.x < kWarps ? warps[threadIdx.x] : functor.identity();
  for (int delta = kWarps / 2; delta > 0; delta /= 2) {
    const Acc other = shuffle_down(acc, delta, static_cast<int>(kWarp));
    functor.combine(acc, other);
  }
}

// True in the block that draws the last of `splits` tickets; the partial results of the others are visible to it.
__device__ inline bool draws_last_ticket(unsigned* tickets, int splits) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1u) == static_cast<unsigned>(splits - 1);
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// --- loading ---------------------------------------------------------------------------------------------------------

template <std::size_t Bytes>
struct alignas(Bytes) Words {
  unsigned words[Bytes / 4];
};

template <std::size_t Bytes>
__device__ inline Words<Bytes> load_words(const char* p) {
  Words<Bytes> result;
  if constexpr (Bytes == 16) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(p));
    result = {v.x, v.y, v.z, v.w};
  } else {
    static_assert(Bytes == 8);
    const uint2 v = __ldg(reinterpret_cast<const uint2*>(p));
    result = {v.x, v.y};
  }
  return result;
}

// Prepares the bits of several elements at once (BitPrep repeats itself over 64 bits) and takes them apart.
template <class In, int N, std::size_t Bytes>
__device__ inline void unpack(Words<Bytes> raw, const functors::BitPrep& prep, In* x) {
  static_assert(sizeof(In) * N == Bytes);
  const unsigned keep[2] = {static_cast<unsigned>(prep.keep), static_cast<unsigned>(prep.keep >> 32)};
  const unsigned flip[2] = {static_cast<unsigned>(prep.flip), static_cast<unsigned>(prep.flip >> 32)};
#pragma unroll
  for (int i = 0; i < static_cast<int>(Bytes / 4); ++i) raw.words[i] = (raw.words[i] & keep[i % 2]) ^ flip[i % 2];
  memcpy(x, &raw, Bytes);
}

template <class In>
__device__ inline In load_element(const char* p, bool aligned) {
  if constexpr (is_complex_v<In>) {
    if (!aligned) {
      const real_t<In>* parts = reinterpret_cast<const real_t<In>*>(p);
      return In(parts[0], parts[1]);
    }
  }
  if constexpr (sizeof(In) == 16) {
    const Words<16> raw = load_words<16>(p);
    In x;
    memcpy(&x, &raw, 16);
    return x;
  } else {
    return *reinterpret_cast<const In*>(p);
  }
}

// Elements as they are.
struct NativeLoader {
  template <class In, int U, int V>
  __device__ void load(const char* const (&p)[U], const functors::BitPrep& prep, bool aligned, In (&x)[U][V]) const {
    if constexpr (V == 1) {
#pragma unroll
      for (int u = 0; u < U; ++u) x[u][0] = load_element<In>(p[u], aligned);
#pragma unroll
      for (int u = 0; u < U; ++u) x[u][0] = functors::prepare(x[u][0], prep);
    } else {
      constexpr std::size_t kBytes = sizeof(In) * V;
      Words<kBytes> raw[U];
#pragma unroll
      for (int u = 0; u < U; ++u) raw[u] = load_words<kBytes>(p[u]);
#pragma unroll
      for (int u = 0; u < U; ++u) unpack<In, V>(raw[u], prep, x[u]);
    }
  }
};

// Elements of any dtype, cast to In.
struct CastLoader {
  DType dtype;

  template <class In, int U>
  __device__ void load(const char* const (&p)[U], const functors::BitPrep& prep, bool aligned, In (&x)[U][1]) const {
    on_dtype(dtype, [&]<class T>() {
      T raw[U];
#pragma unroll
      for (int u = 0; u < U; ++u) raw[u] = load_element<T>(p[u], aligned);
#pragma unroll
      for (int u = 0; u < U; ++u) x[u][0] = functors::prepare(cast<In>(raw[u]), prep);
    });
  }
};

// --- rows ------------------------------------------------------------------------------------------------------------

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
  constexpr int kTogether = R::kSmallBatches || V * U > 16 ? 1 : U;  // vectors in one batch
  const auto element = [&](std::int64_t i) {
    const In x = functors::prepare(load_element<In>(in + i * static_cast<std::int64_t>(sizeof(In)), true), functor.prep);
    functor.add(acc, x, position + i * step);
  };
  const auto misaligned = static_cast<int>(reinterpret_cast<std::uintptr_t>(in) % kVectorBytes / sizeof(In));
  const std::int64_t head = misaligned == 0 ? 0 : (V - misaligned < length ? V - misaligned : length);
  for (std::int64_t i = lane; i < head; i += lanes) element(i);
  const std::int64_t vectors = (length - head) / V;
  const char* const body = in + head * static_cast<std::int64_t>(sizeof(In));
  const std::int64_t body_position = position + head * step;
  std::int64_t v = lane;
  for (; v + (U - 1) * lanes < vectors; v += U * lanes) {
    Words<kVectorBytes> raw[U];
#pragma unroll
    for (int u = 0; u < U; ++u) raw[u] = load_words<kVectorBytes>(body + (v + u * lanes) * kVectorBytes);
#pragma unroll
    for (int b = 0; b < U; b += kTogether) {
      In x[kTogether * V];
#pragma unroll
      for (int u = 0; u < kTogether; ++u) unpack<In, V>(raw[b + u], functor.prep, x + u * V);
      functor.template add_batch<kTogether * V>(
          acc, x, [=](int i) { return body_position + ((v + (b + i / V) * lanes) * V + i % V) * step; });
    }
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
    functor.template add_batch<V>(acc, x,
                                  [=](int i) { return body_position + ((v + u * lanes) * V + i) * step; });
  }
  for (std::int64_t i = head + vectors * V + lane; i < length; i += lanes) element(i);
}

template <class R>
__global__ void __launch_bounds__(kReduceThreads)
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
    const std::int64_t outer_end = outer_begin + plan.outer_chunk < plan.outer_size ? outer_begin + plan.outer_chunk
                                                                                    : plan.outer_size;
    const char* const in =
        buffers.in + in_offset + begin * static_cast<std::int64_t>(sizeof(typename R::In));
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
__global__ void __launch_bounds__(kReduceThreads)
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

// --- columns ---------------------------------------------------------------------------------------------------------

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
__global__ void __launch_bounds__(kReduceThreads)
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
    const char* p[U];
    std::int64_t positions[U];
    In values[U][V];
    for (std::int64_t r = begin + y; r < end; r += U * rows) {
#pragma unroll
      for (int u = 0; u < U; ++u) {  // rows past the end read the last one and are left out
        const std::int64_t row = r + u * rows < end ? r + u * rows : end - 1;
        std::int64_t offset;
        plan.reduced.locate(row, offset, positions[u]);
        p[u] = in + offset;
      }
      loader.load(p, functor.prep, plan.aligned, values);
      const bool whole = r + (U - 1) * rows < end;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        In batch[U];
#pragma unroll
        for (int u = 0; u < U; ++u) batch[u] = values[u][v];
        if (whole) {
          functor.template add_batch<U>(acc[v], batch, [&](int u) { return positions[u]; });
        } else {
#pragma unroll
          for (int u = 0; u < U; ++u)
            if (r + u * rows < end) functor.add(acc[v], batch[u], positions[u]);
        }
      }
    }
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

// --- launching -------------------------------------------------------------------------------------------------------

struct CudaReduction {
  ReduceArgs args;  // `out` and its strides take what the functor stores
  functors::ReduceRoute route;
};

template <class R>
constexpr ReduceTraits traits_of(const CudaReduction& call, bool casts) {
  constexpr int kSize = sizeof(typename R::In);
  return {casts ? info(call.args.in_dtype).itemsize : kSize, casts ? 1 : std::min(kVectorBytes / kSize, 8), casts ? 4 : 8,
          casts};
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
  const ReducePlan plan = plan_reduction(call.args, traits_of<R>(call, false), multiprocessors());
  const R functor{{functors::reduction_of(call.args, call.route)}};
  ReduceBuffers buffers{static_cast<const char*>(call.args.in), static_cast<char*>(call.args.out), nullptr, nullptr};
  switch (plan.path) {
    case ReducePath::kRows:
      if (const int status = prepare_split<typename R::Acc>(call, plan, 1, buffers)) return status;
      return launch(reduce_rows<R>, dim3(static_cast<unsigned>(plan.blocks())), kReduceThreads, 0, call.args.stream, plan,
                    functor, buffers);
    case ReducePath::kShortRows:
      return launch(reduce_short_rows<R>, dim3(static_cast<unsigned>(plan.blocks())), kReduceThreads, 0,
                    call.args.stream, plan, functor, buffers);
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
  const ReducePlan plan = plan_reduction(call.args, traits_of<R>(call, true), multiprocessors());
  const R functor{{functors::reduction_of(call.args, call.route)}};
  const ReduceBuffers buffers{static_cast<const char*>(call.args.in), static_cast<char*>(call.args.out), nullptr, nullptr};
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
