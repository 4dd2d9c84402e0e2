#include "ndarray/kernels/host/bits.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

static_assert(std::endian::native == std::endian::little);  // the first byte is the lowest of a word

constexpr std::uint64_t kEach = 0x0101010101010101;  // a number of 8 bits, in each byte of a word

// 1 in each byte that is not 0.
std::uint64_t truths(std::uint64_t word) noexcept {
  return (((word & 0x7f * kEach) + 0x7f * kEach) | word) >> 7 & kEach;
}

// Of eight bytes of 0 and 1: the product carries each to its place in the highest byte, and no two to one place.
std::uint8_t packed(std::uint64_t ones, bool little) noexcept {
  return static_cast<std::uint8_t>(ones * (little ? 0x0102040810204080 : 0x8040201008040201) >> 56);
}

#if defined(__x86_64__) && defined(__GNUC__)
// As many whole blocks of 32 bytes as there are, by the highest bits of comparisons; returns their number.
[[gnu::target("avx2")]] std::int64_t pack_blocks(const std::uint8_t* x, std::int64_t n, bool little,
                                                 std::uint8_t* out) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i turned = _mm256_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0,
                                          15, 14, 13, 12, 11, 10, 9, 8);
  std::int64_t block = 0;
  for (; 32 * (block + 1) <= n; ++block) {
    __m256i zeros = _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 32 * block)), zero);
    if (!little) zeros = _mm256_shuffle_epi8(zeros, turned);
    const std::uint32_t bits = ~static_cast<std::uint32_t>(_mm256_movemask_epi8(zeros));
    std::memcpy(out + 4 * block, &bits, sizeof bits);
  }
  return block;
}
bool has_blocks() noexcept { return __builtin_cpu_supports("avx2") != 0; }
#else
std::int64_t pack_blocks(const std::uint8_t*, std::int64_t, bool, std::uint8_t*) noexcept { return 0; }
bool has_blocks() noexcept { return false; }
#endif

DLBRIDGE_ND_CLONES void unpack_words(const std::uint8_t* x, std::int64_t n, std::uint64_t places,
                                     std::uint8_t* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = x[i] * kEach & places, ones = (bits + 0x7f * kEach) >> 7 & kEach;
    std::memcpy(out + 8 * i, &ones, sizeof ones);
  }
}

}  // namespace

void pack_bits(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept {
  const std::int64_t blocks = has_blocks() ? pack_blocks(x, n, little, out) : 0;
  std::int64_t i = 32 * blocks;
  out += 4 * blocks;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, x + i, sizeof word);
    *out++ = packed(truths(word), little);
  }
  if (i == n) return;
  std::uint64_t word = 0;
  std::memcpy(&word, x + i, static_cast<std::size_t>(n - i));
  *out = packed(truths(word), little);
}

void unpack_bits(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept {
  unpack_words(x, n, little ? 0x8040201008040201 : 0x0102040810204080, out);
}

}  // namespace dlbridge::nd::host_kernels
