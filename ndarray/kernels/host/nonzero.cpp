// Positions of the true elements.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/inner_loop.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define DLBRIDGE_ND_HAS_COMPRESS 1
#else
#define DLBRIDGE_ND_HAS_COMPRESS 0
#endif

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kGroup = 16;  // elements that are passed over at once where none is true

bool is_any_true(const unsigned char* group) noexcept {
  std::uint64_t low, high;
  std::memcpy(&low, group, sizeof low);
  std::memcpy(&high, group + sizeof low, sizeof high);
  return (low | high) != 0;
}

// By counters of a byte, as many as a vector has, which are added up before one of them is full.
DLBRIDGE_ND_CLONES std::int64_t count_true(const unsigned char* mask, std::int64_t n) noexcept {
  constexpr std::int64_t kCounters = 64, kFull = 255;
  std::int64_t found = 0, i = 0;
  while (i + kCounters <= n) {
    unsigned char counters[kCounters] = {};
    const std::int64_t rounds = std::min(kFull, (n - i) / kCounters);
    for (std::int64_t round = 0; round < rounds; ++round, i += kCounters)
      for (std::int64_t k = 0; k < kCounters; ++k)
        counters[k] = static_cast<unsigned char>(counters[k] + (mask[i + k] != 0 ? 1 : 0));
    for (const unsigned char counter : counters) found += counter;
  }
  for (; i < n; ++i) found += mask[i] != 0;
  return found;
}

#if DLBRIDGE_ND_HAS_COMPRESS
// The positions of eight elements in a vector, of which those of the true ones move together. Whole vectors are
// written, for which there is room: found <= i, and i + kGroup <= n. Compression to memory itself is slow on Zen.
[[gnu::target("avx512f,avx512bw,avx512vl")]] std::int64_t find_in_vectors(const unsigned char* mask, std::int64_t n,
                                                                          std::int64_t* positions) noexcept {
  std::int64_t found = 0;
  __m512i at = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  const __m512i eight = _mm512_set1_epi64(8);
  for (std::int64_t i = 0; i + kGroup <= n; i += kGroup) {
    const __m128i group = _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask + i));
    const unsigned is_true = _mm_test_epi8_mask(group, group);
    for (const unsigned half : {is_true & 0xff, is_true >> 8}) {
      _mm512_storeu_si512(positions + found, _mm512_maskz_compress_epi64(static_cast<__mmask8>(half), at));
      found += __builtin_popcount(half);
      at = _mm512_add_epi64(at, eight);
    }
  }
  return found;
}
#endif

// Each position is written, and counts where the element is true: a branch would be mispredicted at every second one
// of a random mask. There is room, for found <= i < n.
std::int64_t find_true(const unsigned char* mask, std::int64_t n, std::int64_t* positions) noexcept {
  std::int64_t found = 0, i = 0;
#if DLBRIDGE_ND_HAS_COMPRESS
  static const bool has_vectors = __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (has_vectors) {
    found = find_in_vectors(mask, n, positions);
    i = n / kGroup * kGroup;
  }
#endif
  const auto visit = [&](std::int64_t at) {
    positions[found] = at;
    found += mask[at] != 0;
  };
  for (; i + kGroup <= n; i += kGroup) {
    if (!is_any_true(mask + i)) continue;
    for (std::int64_t j = 0; j < kGroup; ++j) visit(i + j);
  }
  for (; i < n; ++i) visit(i);
  return found;
}

}  // namespace

int nonzero(const NonzeroArgs& args) {
  const auto* mask = static_cast<const unsigned char*>(args.mask);
  *args.count = args.positions == nullptr ? count_true(mask, args.n) : find_true(mask, args.n, args.positions);
  return 0;
}

}  // namespace dlbridge::nd::host_kernels
