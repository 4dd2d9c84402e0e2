// Data in the opposite byte order: DLPack has none, so it is refused, or swapped in a copy of dlbridge's own. Pure C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dlbridge/validate.h"

namespace dlbridge {

inline constexpr char kSwapRemedy[] =
    "Byte-swap first, for example a.astype(a.dtype.newbyteorder('=')), or take a copy in native order with "
    "asdlpack(a, copy=True)";

namespace detail {
template <class Word>
void swap_words(void* data, std::int64_t count) noexcept {
  auto* bytes = static_cast<unsigned char*>(data);
  for (std::int64_t i = 0; i < count; ++i, bytes += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes, sizeof(Word));
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(bytes, &word, sizeof(Word));
  }
}
}  // namespace detail

// Turns the numbers of a dense host tensor around; a complex number is two.
inline void swap_bytes(Tensor& dense) noexcept {
  const auto scalar = static_cast<std::int64_t>(alignment_of(dense.dtype()));
  const std::int64_t count = dense.size * (dense.itemsize() / scalar);
  switch (scalar) {
    case 2: return detail::swap_words<std::uint16_t>(dense.dl.data, count);
    case 4: return detail::swap_words<std::uint32_t>(dense.dl.data, count);
    case 8: return detail::swap_words<std::uint64_t>(dense.dl.data, count);
    default: return;  // bytes have no order
  }
}

}  // namespace dlbridge
