// Positions of the true elements of a mask on CUDA: count each tile, scan the counts, read the mask again and write;
// of one tile alone write, and leave the count behind.
// The mask is one byte where a position is eight, so that a second reading costs less than keeping anything would.
#include <cstdint>

#include "ndarray/kernels/cuda/block_sums.cuh"
#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kBytesPerThread = 32;
constexpr int kTile = kThreads * kBytesPerThread;
constexpr int kScanThreads = 1024;

// A thread's kBytesPerThread bytes of the mask, as words whose bytes are 0 or 1.
struct Flags {
  std::uint32_t word[kBytesPerThread / 4];

  __device__ int count() const {
    int total = 0;
#pragma unroll
    for (const std::uint32_t w : word) total += __popc(w);
    return total;
  }
};

__device__ Flags load_flags(const unsigned char* mask, std::int64_t n, bool aligned) {
  const std::int64_t first =
      std::int64_t{blockIdx.x} * kTile + static_cast<std::int64_t>(threadIdx.x) * kBytesPerThread;
  Flags flags{};
  if (aligned && first + kBytesPerThread <= n) {
    const uint4* from = reinterpret_cast<const uint4*>(mask + first);
#pragma unroll
    for (int v = 0; v < kBytesPerThread / 16; ++v) {
      const uint4 loaded = from[v];
      flags.word[4 * v] = __vsetgtu4(loaded.x, 0);
      flags.word[4 * v + 1] = __vsetgtu4(loaded.y, 0);
      flags.word[4 * v + 2] = __vsetgtu4(loaded.z, 0);
      flags.word[4 * v + 3] = __vsetgtu4(loaded.w, 0);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kBytesPerThread; ++i)
      if (first + i < n && mask[first + i] != 0) flags.word[i / 4] |= 1u << (i % 4 * 8);
  }
  return flags;
}

__global__ void __launch_bounds__(kThreads)
    count_tiles(const unsigned char* mask, std::int64_t n, bool aligned, std::int64_t* counts) {
  int total;
  exclusive_sum<kThreads>(load_flags(mask, n, aligned).count(), total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kScanThreads) scan_in_block(std::int64_t* counts, std::int64_t tiles) {
  constexpr int kItems = 8;
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < tiles; first += kScanThreads * kItems) {
    const std::int64_t mine = first + static_cast<std::int64_t>(threadIdx.x) * kItems;
    std::int64_t item[kItems], sum = 0, total;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      item[i] = mine + i < tiles ? counts[mine + i] : 0;
      sum += item[i];
    }
    std::int64_t at = before + exclusive_sum<kScanThreads>(sum, total);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (mine + i < tiles) counts[mine + i] = at;
      at += item[i];
    }
    before += total;
  }
  if (threadIdx.x == 0) counts[tiles] = before;
}

// Positions are collected in shared memory first, so that they leave in whole lines. counts: scanned, of all tiles; of
// one alone its number is left there.
template <bool kAlone>
__global__ void __launch_bounds__(kThreads) write_positions(const unsigned char* mask, std::int64_t n, bool aligned,
                                                            std::int64_t* counts, std::int64_t* positions) {
  __shared__ std::uint16_t found[kTile];
  std::int64_t* out = positions;
  if constexpr (!kAlone) out += counts[blockIdx.x];
  const Flags flags = load_flags(mask, n, aligned);
  int total;
  int at = exclusive_sum<kThreads>(flags.count(), total);
  if (kAlone && threadIdx.x == 0) *counts = total;
#pragma unroll
  for (int i = 0; i < kBytesPerThread; ++i)
    if ((flags.word[i / 4] >> (i % 4 * 8) & 1u) != 0)
      found[at++] = static_cast<std::uint16_t>(static_cast<int>(threadIdx.x) * kBytesPerThread + i);
  __syncthreads();
  const std::int64_t tile = std::int64_t{blockIdx.x} * kTile;
  for (int i = static_cast<int>(threadIdx.x); i < total; i += kThreads) out[i] = tile + found[i];
}
static_assert(kTile <= 65536);

}  // namespace

int scan_counts(std::int64_t* counts, std::int64_t tiles, StreamHandle stream) {
  scan_in_block<<<1, kScanThreads, 0, reinterpret_cast<cudaStream_t>(stream)>>>(counts, tiles);
  return static_cast<int>(cudaGetLastError());
}

int read_count(const std::int64_t* counts, std::int64_t tiles, std::int64_t* count, StreamHandle handle) {
  const auto stream = reinterpret_cast<cudaStream_t>(handle);
  if (const auto rc = cudaMemcpyAsync(count, counts + tiles, sizeof(std::int64_t), cudaMemcpyDeviceToHost, stream);
      rc != cudaSuccess)
    return static_cast<int>(rc);
  return static_cast<int>(cudaStreamSynchronize(stream));
}

int nonzero(const NonzeroArgs& args) {
  *args.count = 0;
  if (args.n == 0) return 0;
  const auto* mask = static_cast<const unsigned char*>(args.mask);
  const auto stream = reinterpret_cast<cudaStream_t>(args.stream);
  const bool aligned = reinterpret_cast<std::uintptr_t>(mask) % 16 == 0;
  const std::int64_t tiles = (args.n + kTile - 1) / kTile;
  auto* counts =
      static_cast<std::int64_t*>(args.workspace.get(static_cast<std::size_t>(tiles + 1) * sizeof(std::int64_t)));
  if (counts == nullptr) return kErrorMemory;
  const auto blocks = static_cast<unsigned>(tiles);
  const bool alone = tiles == 1;
  if (alone && args.positions != nullptr) {
    write_positions<true><<<1, kThreads, 0, stream>>>(mask, args.n, aligned, counts, args.positions);
  } else {
    count_tiles<<<blocks, kThreads, 0, stream>>>(mask, args.n, aligned, counts);
    if (!alone) {
      if (const int rc = scan_counts(counts, tiles, args.stream); rc != 0) return rc;
      if (args.positions != nullptr)
        write_positions<false><<<blocks, kThreads, 0, stream>>>(mask, args.n, aligned, counts, args.positions);
    }
  }
  if (const auto rc = cudaGetLastError(); rc != cudaSuccess) return static_cast<int>(rc);
  return read_count(counts, alone ? 0 : tiles, args.count, args.stream);
}

}  // namespace dlbridge::nd::cuda_kernels
