// Random numbers on CUDA: a thread makes 16 bytes at a time from counters of its own, so that the numbers do not depend
// on the grid.
#include <algorithm>
#include <cstdint>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/random/samplers.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kVectors = 4;  // of 16 bytes, a thread: four chains of rounds hide each other's latency

template <class Sampler>
struct RandomKernelArgs {
  Sampler sampler;
  philox::Keys keys;
  std::uint64_t offset;
  std::int64_t n;
  typename Sampler::value_type* out;
  bool aligned;  // out, to 16 bytes
};

template <class Sampler>
__global__ void __launch_bounds__(kThreads) fill(const __grid_constant__ RandomKernelArgs<Sampler> args) {
  using T = typename Sampler::value_type;
  constexpr int kElements = 16 / sizeof(T);
  constexpr int kCounters = kElements / Sampler::kCount;
  const std::int64_t vector = std::int64_t{blockIdx.x} * (kVectors * kThreads) + threadIdx.x;
  alignas(16) T values[kVectors][kElements];
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int c = 0; c < kCounters; ++c) {
      const std::uint64_t counter = args.offset + static_cast<std::uint64_t>((vector + v * kThreads) * kCounters + c);
      args.sampler(philox::generate(args.keys, counter), args.keys, counter, values[v] + c * Sampler::kCount);
    }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t first = (vector + v * kThreads) * kElements;
    if (args.aligned && args.n - first >= kElements) {
      *reinterpret_cast<uint4*>(args.out + first) = *reinterpret_cast<const uint4*>(values[v]);
    } else {
#pragma unroll
      for (int i = 0; i < kElements; ++i)
        if (first + i < args.n) args.out[first + i] = values[v][i];
    }
  }
}

template <class Sampler>
int launch(const Sampler& sampler, const RandomArgs& args) {
  using T = typename Sampler::value_type;
  constexpr std::int64_t kPerBlock = std::int64_t{kThreads} * kVectors * (16 / sizeof(T));
  const auto blocks = static_cast<unsigned>((args.n + kPerBlock - 1) / kPerBlock);
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.out) % 16 == 0;
  fill<<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(RandomKernelArgs<Sampler>{
      sampler, philox::make_keys(args.seed), args.offset, args.n, static_cast<T*>(args.out), aligned});
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int random(const RandomArgs& args) {
  return philox::visit_sampler(args, [&](const auto& sampler) { return launch(sampler, args); });
}

}  // namespace dlbridge::nd::cuda_kernels
