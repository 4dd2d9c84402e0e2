// How threads put their accumulators together: by shuffles, by reductions in hardware, through memory between blocks.
#pragma once

#include "ndarray/kernels/cuda/lanes.cuh"
#include "ndarray/kernels/cuda/reduce_plan.h"
#include "ndarray/kernels/functors/sort_keys.h"

namespace dlbridge::nd::cuda_kernels {

inline constexpr unsigned kWarp = 32;

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

// 32-bit values as unsigned integers of the same order; zeros are equal, NaN is the largest.
template <class Value>
__device__ inline unsigned order_key(Value value) {
  if constexpr (std::is_same_v<Value, float>) {
    const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes 0
    return functors::is_nan(value) ? ~0u : functors::total_order(bits);
  } else {
    return static_cast<unsigned>(value) ^ (std::is_signed_v<Value> ? 0x80000000u : 0u);
  }
}
template <class R>
inline constexpr bool kHasOrderKey = [] {
  if constexpr (R::kFindsLater) return sizeof(typename R::Value) == 4;
  else return false;
}();

// The largest of a warp, to each of its threads: a reduction in hardware since Ampere, shuffles before.
__device__ inline unsigned warp_max(unsigned value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, value);
#else
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = max(value, __shfl_xor_sync(0xffffffffu, value, mask));
  return value;
#endif
}
__device__ inline unsigned warp_min(unsigned value) { return ~warp_max(~value); }

// The first of the largest of a warp, to each of its threads.
template <class Acc>
__device__ inline void merge_warp_by_key(Acc& acc) {
  constexpr unsigned kAll = 0xffffffffu;
  const unsigned key = order_key(acc.value), best = warp_max(key);
  const auto position = static_cast<std::uint64_t>(acc.position);
  const unsigned high = key == best ? static_cast<unsigned>(position >> 32) : kAll;
  const unsigned best_high = warp_min(high);
  const unsigned low = warp_min(high == best_high ? static_cast<unsigned>(position) : kAll);
  const int owner = __ffs(static_cast<int>(__ballot_sync(kAll, key == best))) - 1;
  acc.value = __shfl_sync(kAll, acc.value, owner);
  acc.position = static_cast<std::int64_t>(std::uint64_t{best_high} << 32 | low);
}

// Whether this thread may hold the first of the largest of its warp, whose 32 lanes work on one row.
template <class Value>
__device__ inline bool leads_warp(Value seen) {
  if constexpr (sizeof(Value) == 4) return order_key(seen) == warp_max(order_key(seen));
  else return true;
}

// Merges the accumulators of `lanes` neighbouring threads, a power of two up to a warp or the whole block; the first
// of them gets the result. Every thread of the block calls it.
template <class R>
__device__ inline void merge_lanes(const R& functor, typename R::Acc& acc, int lanes) {
  using Acc = typename R::Acc;
  const auto merge_warp = [&](int width) {
    if constexpr (kHasOrderKey<R>)
      if (width == static_cast<int>(kWarp)) return merge_warp_by_key(acc);
    for (int delta = width / 2; delta > 0; delta /= 2) {
      const Acc other = shuffle_down(acc, delta, width);
      functor.combine(acc, other);
    }
  };
  merge_warp(lanes < static_cast<int>(kWarp) ? lanes : static_cast<int>(kWarp));
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
  merge_warp(kHasOrderKey<R> ? static_cast<int>(kWarp) : kWarps);
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

}  // namespace dlbridge::nd::cuda_kernels
