// Small matrices on CUDA, all of a stack by one launch: a warp each for the smallest, else a block.
#include "ndarray/kernels/cuda/launch.cuh"
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/small_matrix.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kMostWarps = 4;  // of a block whose warps work apart
constexpr int kMostThreads = 512;
// How many rows the matrices have that a warp works off by itself, and those that a block of few threads does, and of
// more.
constexpr int kNarrowRows = 8;
constexpr int kWarpRows = 16;
constexpr int kFewRows = 32;
constexpr int kManyRows = 64;

// A warp is as wide as the matrices are, up to a power of 2, so that few of its lanes are idle.
template <int kLanes, bool kIsBlock>
struct Team {
  __device__ static int lane() { return static_cast<int>(threadIdx.x % kLanes); }
  __device__ static constexpr int lanes() { return kLanes; }
  __device__ static int group() { return static_cast<int>((kIsBlock ? threadIdx.x : threadIdx.x % kWarp) / kLanes); }
  __device__ static int groups() { return static_cast<int>(kIsBlock ? blockDim.x / kLanes : kWarp / kLanes); }
  __device__ static void sync() {
    if constexpr (kIsBlock) __syncthreads();
    else __syncwarp();
  }
  template <class Candidate>
  __device__ static Candidate strongest(Candidate best) {
#pragma unroll
    for (int other = kLanes / 2; other > 0; other /= 2) {
      const Candidate its{__shfl_xor_sync(0xffffffffu, best.magnitude, other),
                          __shfl_xor_sync(0xffffffffu, best.row, other)};
      if (its.is_stronger_than(best)) best = its;
    }
    return best;
  }
};

template <class T, int kLanes, bool kIsBlock>
__global__ void __launch_bounds__(kIsBlock ? kMostThreads : kWarp * kMostWarps)
    work_off(const __grid_constant__ MatrixArgs args, const __grid_constant__ functors::MatrixPlan plan) {
  extern __shared__ __align__(16) unsigned char memory[];
  std::int64_t team = blockIdx.x;
  unsigned char* own = memory;
  if constexpr (!kIsBlock) {
    const int warp = static_cast<int>(threadIdx.x / kWarp);
    team = team * (blockDim.x / kWarp) + warp;
    own += warp * plan.bytes;
  }
  if (team < plan.teams) functors::MatrixTask<T>(args, plan, team, own).run(Team<kLanes, kIsBlock>{});
}

template <class T, int kLanes, bool kIsBlock>
int launch_teams(const MatrixArgs& args, const functors::MatrixPlan& plan, int threads) {
  constexpr int kWithoutAsking = 48 << 10;
  const int teams = kIsBlock ? 1 : threads / kWarp;  // of a block
  const int bytes = plan.bytes * teams;
  const auto kernel = work_off<T, kLanes, kIsBlock>;
  if (bytes > kWithoutAsking) {
    const auto code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, functors::kMatrixBytes);
    if (code != cudaSuccess) return static_cast<int>(code);
  }
  const auto blocks = static_cast<unsigned>((plan.teams + teams - 1) / teams);
  return launch(kernel, blocks, static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), args.stream, args,
                plan);
}

template <class T>
int launch_for(const MatrixArgs& args, const functors::MatrixPlan& plan) {
  const int warps = functors::kMatrixBytes / plan.bytes < kMostWarps ? functors::kMatrixBytes / plan.bytes : kMostWarps;
  if (args.n <= kNarrowRows) return launch_teams<T, kNarrowRows, false>(args, plan, kWarp * warps);
  if (args.n <= kWarpRows) return launch_teams<T, kWarpRows, false>(args, plan, kWarp * warps);
  return launch_teams<T, kWarp, true>(args, plan, args.n <= kFewRows ? 128 : args.n <= kManyRows ? 256 : kMostThreads);
}

}  // namespace

int small_matrices(const MatrixArgs& args) {
  const auto plan = functors::plan_matrices(args);
  return visit_dtype<functors::kMatrixSet>(
      args.dtype, [&]<class T>() { return launch_for<T>(args, plan); }, kErrorUnsupported);
}

}  // namespace dlbridge::nd::cuda_kernels
