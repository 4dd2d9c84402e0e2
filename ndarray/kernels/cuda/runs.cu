// The runs of equal elements of a sorted row on CUDA. A tile is one block's, and what fits into one takes one kernel;
// of longer rows the starts of each tile are counted, the counts are scanned, and the row is read again.
#include "ndarray/kernels/cuda/block_sums.cuh"
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/runs.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 1024;
constexpr int kRounds = 8;  // of a warp, whose lanes look at neighbours
constexpr int kTile = kThreads * kRounds;

// What a warp's lanes look at: in round r the elements at first + r * kWarp + lane.
struct Starts {
  unsigned bits[kRounds];  // a lane's bit is set where it begins a run; the same in all lanes
  std::int64_t first;

  template <class T>
  __device__ explicit Starts(const RunsArgs& args, const T* sorted)
      : first(std::int64_t{blockIdx.x} * kTile + static_cast<std::int64_t>(threadIdx.x / kWarp) * (kWarp * kRounds)) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const std::int64_t i = first + r * kWarp + lane;
      const bool begins = i < args.n && (i == 0 || functors::begins_run(sorted[i - 1], sorted[i], args.equal_nan));
      bits[r] = __ballot_sync(0xffffffffu, begins);
    }
  }

  // Of the warps before; `total` of the block.
  __device__ int before(int& total) const {
    int mine = 0;
#pragma unroll
    for (const unsigned word : bits) mine += __popc(word);
    const int sum = exclusive_sum<kThreads>(threadIdx.x % kWarp == 0 ? mine : 0, total);
    return __shfl_sync(0xffffffffu, sum, 0);
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) count_starts(RunsArgs args, std::int64_t* counts) {
  int total;
  Starts(args, static_cast<const T*>(args.sorted)).before(total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

__device__ void measure_run(const RunsArgs& args, const std::int64_t* begin, std::int64_t run, std::int64_t runs) {
  args.lengths[run] = (run + 1 < runs ? begin[run + 1] : args.n) - begin[run];
}
__global__ void __launch_bounds__(kThreads)
    measure_runs(RunsArgs args, const std::int64_t* begin, const std::int64_t* runs) {
  const std::int64_t run = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (run < *runs) measure_run(args, begin, run, *runs);
}

// counts: scanned, of all tiles; of one alone its number is left there. begin: written where it is not null.
template <class T, bool kAlone>
__global__ void __launch_bounds__(kThreads) write_runs(RunsArgs args, std::int64_t* counts, std::int64_t* begin) {
  const T* sorted = static_cast<const T*>(args.sorted);
  const Starts starts(args, sorted);
  int total;
  std::int64_t run = starts.before(total) - 1;
  if constexpr (!kAlone) run += counts[blockIdx.x];
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const std::int64_t i = starts.first + r * kWarp + lane;
    if (i < args.n) {
      const std::int64_t mine = run + __popc(starts.bits[r] << (kWarp - 1 - lane));
      const std::int64_t place = args.order == nullptr ? i : args.order[i];
      if ((starts.bits[r] >> lane & 1u) != 0) {
        if (args.values != nullptr) static_cast<T*>(args.values)[mine] = sorted[i];
        if (args.first != nullptr) args.first[mine] = place;
        if (begin != nullptr) begin[mine] = i;
      }
      if (args.inverse != nullptr) args.inverse[place] = mine;
    }
    run += __popc(starts.bits[r]);
  }
  if constexpr (kAlone) {
    if (threadIdx.x == 0) *counts = total;
    if (args.lengths == nullptr) return;
    __syncthreads();  // the block's own writes are seen behind it
    for (int k = static_cast<int>(threadIdx.x); k < total; k += kThreads) measure_run(args, begin, k, total);
  }
}

template <class T>
int launch(const RunsArgs& args, std::int64_t tiles, std::int64_t* counts, std::int64_t* begin) {
  const auto stream = reinterpret_cast<cudaStream_t>(args.stream);
  const auto blocks = static_cast<unsigned>(tiles);
  if (tiles == 1) {
    write_runs<T, true><<<1, kThreads, 0, stream>>>(args, counts, begin);
    return static_cast<int>(cudaGetLastError());
  }
  count_starts<T><<<blocks, kThreads, 0, stream>>>(args, counts);
  if (const int rc = scan_counts(counts, tiles, args.stream); rc != 0) return rc;
  write_runs<T, false><<<blocks, kThreads, 0, stream>>>(args, counts, begin);
  if (args.lengths != nullptr)
    measure_runs<<<static_cast<unsigned>((args.n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(args, begin,
                                                                                                     counts + tiles);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int runs(const RunsArgs& args) {
  *args.count = 0;
  if (args.n == 0) return 0;
  const std::int64_t tiles = (args.n + kTile - 1) / kTile;
  const auto room = [&](std::int64_t n) {
    return static_cast<std::int64_t*>(args.workspace.get(static_cast<std::size_t>(n) * sizeof(std::int64_t)));
  };
  std::int64_t* const counts = room(tiles + 1);
  std::int64_t* const begin = args.lengths == nullptr ? nullptr : room(args.n);
  if (counts == nullptr || (args.lengths != nullptr && begin == nullptr)) return kErrorMemory;
  const int rc = visit_dtype<functors::kRunSet>(
      args.dtype, [&]<class T>() { return launch<T>(args, tiles, counts, begin); }, kErrorUnsupported);
  return rc != 0 ? rc : read_count(counts, tiles == 1 ? 0 : tiles, args.count, args.stream);
}

}  // namespace dlbridge::nd::cuda_kernels
