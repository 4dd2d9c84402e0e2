#include "ndarray/kernels/host/philox_lanes.h"

#include "ndarray/kernels/host/inner_loop.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DLBRIDGE_ND_WIDE [[gnu::target("avx512f,avx512dq,avx512vl,avx2,fma")]]
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

#if defined(DLBRIDGE_ND_WIDE)
using Words = std::uint64_t __attribute__((vector_size(64)));  // a word in the low half of each lane, anything above it
using Halves = std::uint32_t __attribute__((vector_size(32)));

DLBRIDGE_ND_WIDE inline Words times(Words x, std::uint32_t multiplier) noexcept {
  const auto factors = reinterpret_cast<__m512i>(Words{} + multiplier);
  return reinterpret_cast<Words>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(x), factors));
}

// In registers from the first round to the last. The multiplication reads the low halves alone, so that nothing need be
// cut off: 32-bit lanes would have to be taken apart and put together again for every product.
DLBRIDGE_ND_WIDE void generate_wide(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) noexcept {
  constexpr int kVectors = 4, kWidth = 8;  // vectors side by side, as a product has to be waited for
  for (int i = 0; i < kLanes; i += kVectors * kWidth) {
    Words x[4][kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      x[0][j] = counter + static_cast<std::uint64_t>(i + j * kWidth) + Words{0, 1, 2, 3, 4, 5, 6, 7};
      x[1][j] = x[0][j] >> 32;
      x[2][j] = x[3][j] = Words{};
    }
    for (const auto& key : keys.key) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        const Words p0 = times(x[0][j], philox::kMultiplier0), p1 = times(x[2][j], philox::kMultiplier1);
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
#endif

}  // namespace

void generate(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) noexcept {
#if defined(DLBRIDGE_ND_WIDE)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return generate_wide(keys, counter, lanes);
#endif
  generate_plain(keys, counter, lanes);
}

}  // namespace dlbridge::nd::host_kernels
