// Arrow's bitmaps: validity (a bit that is 0 is a null) and packed bools, least significant bit first.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace dlbridge::arrow_c::detail {

inline bool bit_at(const std::uint8_t* bits, std::int64_t i) noexcept { return (bits[i / 8] >> (i % 8) & 1) != 0; }

inline std::int64_t count_zeros(const std::uint8_t* bits, std::int64_t first, std::int64_t count) noexcept {
  std::int64_t ones = 0, i = first;
  const std::int64_t end = first + count;
  for (; i < end && i % 8 != 0; ++i) ones += bit_at(bits, i);
  for (; end - i >= 64; i += 64) {
    std::uint64_t word;
    std::memcpy(&word, bits + i / 8, sizeof(word));
    ones += std::popcount(word);
  }
  for (; i < end; ++i) ones += bit_at(bits, i);
  return count - ones;
}

// visit(i) for each bit that is 0, counted from `first`.
template <class Visit>
void for_each_zero(const std::uint8_t* bits, std::int64_t first, std::int64_t count, Visit visit) {
  const std::int64_t end = first + count;
  for (std::int64_t i = first; i < end;) {
    if (i % 8 == 0 && end - i >= 8 && bits[i / 8] == 0xff) {
      i += 8;
      continue;
    }
    if (!bit_at(bits, i)) visit(i - first);
    ++i;
  }
}

inline void unpack_bits(const std::uint8_t* bits, std::int64_t first, std::int64_t count, std::uint8_t* out) noexcept {
  for (std::int64_t i = 0; i < count; ++i) out[i] = bit_at(bits, first + i);
}

// `out` has room for count / 8 bytes, rounded up. Any byte but 0 is true.
inline void pack_bits(const std::uint8_t* bytes, std::int64_t count, std::uint8_t* out) noexcept {
  std::memset(out, 0, static_cast<std::size_t>((count + 7) / 8));
  for (std::int64_t i = 0; i < count; ++i)
    out[i / 8] = static_cast<std::uint8_t>(out[i / 8] | (bytes[i] != 0 ? 1 << (i % 8) : 0));
}

}  // namespace dlbridge::arrow_c::detail
