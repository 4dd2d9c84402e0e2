// Sums over the threads of a block, and over the counts of all tiles of a row.
#pragma once

#include <cstdint>

#include "dlbridge/stream.h"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kWarp = 32;

// Sum over the threads of smaller number; `total` over all of the block.
template <int kBlock, class Count>
__device__ Count exclusive_sum(Count mine, Count& total) {
  __shared__ Count of_warp[kBlock / kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  Count sum = mine;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const Count other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == kWarp - 1) of_warp[warp] = sum;
  __syncthreads();
  Count before = 0;
  total = 0;
#pragma unroll
  for (int w = 0; w < kBlock / kWarp; ++w) {
    if (w == warp) before = total;
    total += of_warp[w];
  }
  __syncthreads();  // of_warp may be written again
  return before + sum - mine;
}

// counts[0, tiles) become the sums of those before; counts[tiles] the sum of all. In nonzero.cu.
int scan_counts(std::int64_t* counts, std::int64_t tiles, StreamHandle stream);

// Writes counts[tiles] to the host's memory, and waits for it.
int read_count(const std::int64_t* counts, std::int64_t tiles, std::int64_t* count, StreamHandle stream);

}  // namespace dlbridge::nd::cuda_kernels
