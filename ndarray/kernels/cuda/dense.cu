// Functions of dense elements on CUDA: each input is read once, each result written once.
#include "ndarray/kernels/functors/dense.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWordsPerThread = 4;  // of eight elements, or bits

template <class T, int n>
struct alignas(std::min<std::size_t>(sizeof(T) * n, 16)) Pack {
  T values[n];
};

template <class F>
struct MapParams {
  F f;
  std::int64_t n;
  const typename F::In* in[2];
  typename F::First* first;
  typename F::Second* second;
  bool repeats[2];
};

// n elements a thread, which lie at a multiple of their size in bytes, up to 16.
template <class F, int n>
__global__ void __launch_bounds__(kThreads) map_dense(const __grid_constant__ MapParams<F> p) {
  using In = typename F::In;
  constexpr bool kTwo = !std::is_same_v<typename F::Second, Nothing>;
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * n;
  if (at >= p.n) return;
  if (at + n > p.n) {
    for (std::int64_t i = at; i < p.n; ++i) {
      const In x = p.in[0][p.repeats[0] ? 0 : i];
      typename F::Second unused;
      p.f(x, F::kInputs == 1 ? x : p.in[1][p.repeats[1] ? 0 : i], p.first[i], kTwo ? p.second[i] : unused);
    }
    return;
  }
  Pack<In, n> in[F::kInputs];
#pragma unroll
  for (int k = 0; k < F::kInputs; ++k) {
    if (!p.repeats[k]) {
      in[k] = *reinterpret_cast<const Pack<In, n>*>(p.in[k] + at);
      continue;
    }
    const In repeated = *p.in[k];
#pragma unroll
    for (In& value : in[k].values) value = repeated;
  }
  Pack<typename F::First, n> first;
  Pack<typename F::Second, n> second;
#pragma unroll
  for (int j = 0; j < n; ++j) p.f(in[0].values[j], in[F::kInputs - 1].values[j], first.values[j], second.values[j]);
  *reinterpret_cast<Pack<typename F::First, n>*>(p.first + at) = first;
  if constexpr (kTwo) *reinterpret_cast<Pack<typename F::Second, n>*>(p.second + at) = second;
}

template <int n, class F>
int launch(const MapParams<F>& p, cudaStream_t stream) {
  constexpr std::int64_t a_block = std::int64_t{kThreads} * n;
  map_dense<F, n><<<static_cast<unsigned>((p.n + a_block - 1) / a_block), kThreads, 0, stream>>>(p);
  return static_cast<int>(cudaGetLastError());
}

bool is_at_multiple(const void* address, std::uintptr_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

template <class F>
int map(F f, const DenseArgs& args) {
  using In = typename F::In;
  const MapParams<F> p{f,
                       args.n,
                       {static_cast<const In*>(args.in[0]), static_cast<const In*>(args.in[1])},
                       static_cast<typename F::First*>(args.out[0]),
                       static_cast<typename F::Second*>(args.out[1]),
                       {args.repeats[0], args.repeats[1]}};
  constexpr int kElements = std::max<int>(16 / sizeof(In), 1);
  bool wide = is_at_multiple(args.out[0], 16) && is_at_multiple(args.out[1], 16);
  for (int k = 0; k < F::kInputs; ++k) wide = wide && (args.repeats[k] || is_at_multiple(args.in[k], 16));
  const auto stream = reinterpret_cast<cudaStream_t>(args.stream);
  return wide ? launch<kElements>(p, stream) : launch<1>(p, stream);
}

// --- bits ------------------------------------------------------------------------------------------------------------

struct BitParams {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::int64_t n;  // bytes of `in`
  bool little;
  bool wide;  // both lie at a multiple of 16
};

union Words {
  uint4 pairs[kWordsPerThread / 2];
  std::uint64_t words[kWordsPerThread];
  std::uint8_t bytes[8 * kWordsPerThread];
};
union Bytes {
  std::uint32_t all;
  std::uint8_t bytes[kWordsPerThread];
};

__global__ void __launch_bounds__(kThreads) pack(const __grid_constant__ BitParams p) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWordsPerThread;  // byte of `out`
  if (8 * first >= p.n) return;
  const auto left = static_cast<int>(std::min<std::int64_t>(p.n - 8 * first, 8 * kWordsPerThread));
  Words in{};
  if (p.wide && left == 8 * kWordsPerThread) {
    for (int k = 0; k < kWordsPerThread / 2; ++k) in.pairs[k] = reinterpret_cast<const uint4*>(p.in + 8 * first)[k];
  } else {
#pragma unroll
    for (int k = 0; k < 8 * kWordsPerThread; ++k)
      if (k < left) in.bytes[k] = p.in[8 * first + k];
  }
  Bytes out;
#pragma unroll
  for (int k = 0; k < kWordsPerThread; ++k) out.bytes[k] = pack_word(in.words[k], p.little);
  if (p.wide && left == 8 * kWordsPerThread) {
    *reinterpret_cast<std::uint32_t*>(p.out + first) = out.all;
    return;
  }
#pragma unroll
  for (int k = 0; k < kWordsPerThread; ++k)
    if (8 * k < left) p.out[first + k] = out.bytes[k];
}

__global__ void __launch_bounds__(kThreads) unpack(const __grid_constant__ BitParams p) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWordsPerThread;  // byte of `in`
  if (first >= p.n) return;
  const auto left = static_cast<int>(std::min<std::int64_t>(p.n - first, kWordsPerThread));
  Bytes in{};
  const bool wide = p.wide && left == kWordsPerThread;
  if (wide) {
    in.all = *reinterpret_cast<const std::uint32_t*>(p.in + first);
  } else {
#pragma unroll
    for (int k = 0; k < kWordsPerThread; ++k)
      if (k < left) in.bytes[k] = p.in[first + k];
  }
  Words out;
#pragma unroll
  for (int k = 0; k < kWordsPerThread; ++k) out.words[k] = unpack_byte(in.bytes[k], p.little);
  if (wide) {
    for (int k = 0; k < kWordsPerThread / 2; ++k) reinterpret_cast<uint4*>(p.out + 8 * first)[k] = out.pairs[k];
    return;
  }
#pragma unroll
  for (int k = 0; k < kWordsPerThread; ++k)
    if (k < left) memcpy(p.out + 8 * (first + k), &out.words[k], 8);
}

int launch_bits(const DenseArgs& args) {
  const BitParams p{static_cast<const std::uint8_t*>(args.in[0]), static_cast<std::uint8_t*>(args.out[0]), args.n,
                    args.flag, is_at_multiple(args.in[0], 16) && is_at_multiple(args.out[0], 16)};
  const bool packs = args.op == DenseOp::kPackBits;
  const std::int64_t bytes = packs ? (args.n + 7) / 8 : args.n;
  constexpr std::int64_t a_block = std::int64_t{kThreads} * kWordsPerThread;
  const auto blocks = static_cast<unsigned>((bytes + a_block - 1) / a_block);
  const auto stream = reinterpret_cast<cudaStream_t>(args.stream);
  if (packs) pack<<<blocks, kThreads, 0, stream>>>(p);
  else unpack<<<blocks, kThreads, 0, stream>>>(p);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int dense(const DenseArgs& args) {
  if (args.op == DenseOp::kPackBits || args.op == DenseOp::kUnpackBits) return launch_bits(args);
  return with_dense_functor(args, [&](auto f) { return map(f, args); });
}

}  // namespace dlbridge::nd::cuda_kernels
