#include "ndarray/kernels/host/bits.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "ndarray/kernels/functors/dense.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

static_assert(std::endian::native == std::endian::little);  // the first byte is the lowest of a word

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

DLBRIDGE_ND_CLONES void unpack_words(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t word = unpack_byte(x[i], little);
    std::memcpy(out + 8 * i, &word, sizeof word);
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
    *out++ = pack_word(word, little);
  }
  if (i == n) return;
  std::uint64_t word = 0;
  std::memcpy(&word, x + i, static_cast<std::size_t>(n - i));
  *out = pack_word(word, little);
}

void unpack_bits(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept {
  unpack_words(x, n, little, out);
}

}  // namespace dlbridge::nd::host_kernels
