#include "ndarray/kernels/host/philox_lanes.h"

#include <type_traits>

#include "ndarray/kernels/host/inner_loop.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DLBRIDGE_ND_IN_REGISTERS
#include <immintrin.h>
#endif

namespace dlbridge::nd::host_kernels {
namespace {

DLBRIDGE_ND_CLONES void generate_plain(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) noexcept {
  auto& x = lanes.x;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint64_t c = counter + static_cast<std::uint64_t>(i);
    x[0][i] = static_cast<std::uint32_t>(c);
    x[1][i] = static_cast<std::uint32_t>(c >> 32);
    x[2][i] = x[3][i] = 0;
  }
  for (const auto& key : keys.key) {
    const std::uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t p0 = std::uint64_t{philox::kMultiplier0} * x[0][i];
      const std::uint64_t p1 = std::uint64_t{philox::kMultiplier1} * x[2][i];
      x[0][i] = static_cast<std::uint32_t>(p1 >> 32) ^ x[1][i] ^ k0;
      x[1][i] = static_cast<std::uint32_t>(p1);
      x[2][i] = static_cast<std::uint32_t>(p0 >> 32) ^ x[3][i] ^ k1;
      x[3][i] = static_cast<std::uint32_t>(p0);
    }
  }
}

#if defined(DLBRIDGE_ND_IN_REGISTERS)
// In registers from the first round to the last, a word in the low half of each 64 bits and anything above it. The
// multiplication reads the low halves alone, so that nothing need be cut off: 32-bit lanes would have to be taken apart
// and put together again for every product. kVectors side by side, as a product has to be waited for.
template <int kBytes, int kVectors, class Multiply>
[[gnu::always_inline]] inline void generate_in(Multiply multiply, const philox::Keys& keys, std::uint64_t counter,
                                               Lanes& lanes) noexcept {
  typedef std::uint64_t Words __attribute__((vector_size(kBytes)));
  typedef std::uint32_t Halves __attribute__((vector_size(kBytes / 2)));
  constexpr int kWidth = kBytes / 8;
  constexpr std::uint64_t kOrder[] = {0, 1, 2, 3, 4, 5, 6, 7};
  Words order;
  __builtin_memcpy(&order, kOrder, kBytes);
  for (int i = 0; i < kLanes; i += kVectors * kWidth) {
    Words x[4][kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      x[0][j] = order + (counter + static_cast<std::uint64_t>(i + j * kWidth));
      x[1][j] = x[0][j] >> 32;
      x[2][j] = x[3][j] = Words{};
    }
    for (const auto& key : keys.key) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        Words p0, p1;
        multiply(x[0][j], philox::kMultiplier0, p0);
        multiply(x[2][j], philox::kMultiplier1, p1);
        x[0][j] = p1 >> 32 ^ x[1][j] ^ std::uint64_t{key[0]};
        x[1][j] = p1;
        x[2][j] = p0 >> 32 ^ x[3][j] ^ std::uint64_t{key[1]};
        x[3][j] = p0;
      }
    }
#pragma GCC unroll 4
    for (int word = 0; word < 4; ++word) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        const Halves halves = __builtin_convertvector(x[word][j], Halves);
        __builtin_memcpy(lanes.x[word] + i + j * kWidth, &halves, sizeof halves);
      }
    }
  }
}

#define DLBRIDGE_ND_GENERATE(name, isa, bytes, vectors, vector, product)                                        \
  [[gnu::target(isa)]] void name(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) noexcept {      \
    const auto multiply = [](const auto& x, std::uint32_t multiplier, auto& out) __attribute__((target(isa))) { \
      using Words = std::remove_cvref_t<decltype(x)>;                                                           \
      const auto a = reinterpret_cast<vector>(x), b = reinterpret_cast<vector>(Words{} + multiplier);           \
      out = reinterpret_cast<Words>(product);                                                                   \
    };                                                                                                          \
    generate_in<bytes, vectors>(multiply, keys, counter, lanes);                                                \
  }
DLBRIDGE_ND_GENERATE(generate_in_ymm, "avx2", 32, 2, __m256i, _mm256_mul_epu32(a, b))
// All of a mask: g++ 12 warns of the vector that its headers leave undefined where there is none.
DLBRIDGE_ND_GENERATE(generate_in_zmm, "avx512f,avx512dq,avx512vl,avx2,fma", 64, 4, __m512i,
                     _mm512_maskz_mul_epu32(0xff, a, b))
#undef DLBRIDGE_ND_GENERATE
#endif

}  // namespace

Generators find_generators() noexcept {
  Generators found;
#if defined(DLBRIDGE_ND_IN_REGISTERS)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    found.ways[found.count++] = generate_in_zmm;
  if (__builtin_cpu_supports("avx2")) found.ways[found.count++] = generate_in_ymm;
#endif
  found.ways[found.count++] = generate_plain;
  return found;
}

void generate(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) noexcept {
  static const Generate fastest = find_generators().ways[0];
  fastest(keys, counter, lanes);
}

}  // namespace dlbridge::nd::host_kernels
