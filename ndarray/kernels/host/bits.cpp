#include "ndarray/kernels/host/bits.h"

#include <algorithm>
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

// `bits` bytes of 0 and 1.
inline void unpack_row(const std::uint8_t* x, std::int64_t bits, bool little, std::uint8_t* out) noexcept {
  for (; bits >= 8; bits -= 8, out += 8) {
    const std::uint64_t word = unpack_byte(*x++, little);
    std::memcpy(out, &word, sizeof word);
  }
  if (bits == 0) return;
  for (std::uint64_t word = unpack_byte(*x, little); bits > 0; --bits, word >>= 8) *out++ = word & 1;
}

// A bit for each of `behind` bytes, from `bits` rows of them, eight at most.
DLBRIDGE_ND_CLONES void pack_rows(const std::uint8_t* x, std::int64_t bits, std::int64_t behind, bool little,
                                  std::uint8_t* out) noexcept {
  std::memset(out, 0, static_cast<std::size_t>(behind));
  for (int bit = 0; bit < bits; ++bit, x += behind) {
    const int place = little ? bit : 7 - bit;
    for (std::int64_t i = 0; i < behind; ++i) out[i] |= static_cast<std::uint8_t>((x[i] != 0 ? 1 : 0) << place);
  }
}

// `bits` rows of 0 and 1, eight at most, from one of bytes.
DLBRIDGE_ND_CLONES void unpack_rows(const std::uint8_t* x, std::int64_t bits, std::int64_t behind, bool little,
                                    std::uint8_t* out) noexcept {
  for (int bit = 0; bit < bits; ++bit, out += behind) {
    const int place = little ? bit : 7 - bit;
    for (std::int64_t i = 0; i < behind; ++i) out[i] = static_cast<std::uint8_t>((x[i] >> place) & 1);
  }
}
// The same for short rows, in vectors that go past a row's end: into the next one, which is written after it.
constexpr std::int64_t kVector = 16;
DLBRIDGE_ND_CLONES void unpack_short_rows(const std::uint8_t* x, std::int64_t bits, std::int64_t behind, bool little,
                                          std::uint8_t* out) noexcept {
  for (int bit = 0; bit < bits; ++bit, out += behind) {
    const int place = little ? bit : 7 - bit;
    for (std::int64_t i = 0; i < behind; i += kVector) {
      std::uint8_t row[kVector];
      std::memcpy(row, x + i, kVector);
      for (std::uint8_t& byte : row) byte = static_cast<std::uint8_t>((byte >> place) & 1);
      std::memcpy(out + i, row, kVector);
    }
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

void pack_bits_along(const std::uint8_t* x, MiddleAxis axis, bool little, std::uint8_t* out) noexcept {
  const std::int64_t bytes = (axis.n + 7) / 8;
  for (std::int64_t k = 0; k < axis.before; ++k, x += axis.n * axis.behind, out += bytes * axis.behind) {
    if (axis.behind == 1) {
      pack_bits(x, axis.n, little, out);
      continue;
    }
    for (std::int64_t byte = 0; byte < bytes; ++byte)
      pack_rows(x + 8 * byte * axis.behind, std::min<std::int64_t>(axis.n - 8 * byte, 8), axis.behind, little,
                out + byte * axis.behind);
  }
}

void unpack_bits_along(const std::uint8_t* x, MiddleAxis axis, std::int64_t count, bool little,
                       std::uint8_t* out) noexcept {
  if (axis.behind == 1 && count == 8 * axis.n) return unpack_bits(x, axis.before * axis.n, little, out);
  const std::int64_t there = std::min(count, 8 * axis.n);
  const std::uint8_t* const end = x + axis.before * axis.n * axis.behind;
  const std::uint8_t* const out_end = out + axis.before * count * axis.behind;
  for (std::int64_t k = 0; k < axis.before; ++k, x += axis.n * axis.behind, out += count * axis.behind) {
    if (axis.behind == 1) unpack_row(x, there, little, out);
    for (std::int64_t byte = 0; axis.behind != 1 && 8 * byte < there; ++byte) {
      const std::uint8_t* const from = x + byte * axis.behind;
      std::uint8_t* const to = out + 8 * byte * axis.behind;
      const std::int64_t bits = std::min<std::int64_t>(there - 8 * byte, 8);
      const bool has_room = end - from >= axis.behind + kVector && out_end - to >= bits * axis.behind + kVector;
      (axis.behind < 2 * kVector && has_room ? unpack_short_rows : unpack_rows)(from, bits, axis.behind, little, to);
    }
    if (count > there)
      std::memset(out + there * axis.behind, 0, static_cast<std::size_t>((count - there) * axis.behind));
  }
}

}  // namespace dlbridge::nd::host_kernels
