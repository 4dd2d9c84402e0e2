// Rows moved by as few wide loads and stores as they take.
#pragma once

#include <cstdint>
#include <cstring>

namespace dlbridge::nd::host_kernels {

template <int kBytes>
struct Wide {
  using Word [[gnu::vector_size(kBytes)]] = unsigned char;  // a struct would be kept in memory
};

// Rows of up to two words, which overlap in the middle: a copy of that length without a branch.
template <class Word, class To, class From>
inline void move_words(To to, From from, std::int64_t bytes, std::int64_t rows) noexcept {
  const std::int64_t last = bytes - static_cast<std::int64_t>(sizeof(Word));
  for (std::int64_t row = 0; row < rows; ++row) {
    char* const target = to(row);
    const char* const source = from(row);
    Word first, second;
    std::memcpy(&first, source, sizeof first);
    std::memcpy(&second, source + last, sizeof second);
    std::memcpy(target, &first, sizeof first);
    std::memcpy(target + last, &second, sizeof second);
  }
}

// `to` and `from` tell where a row begins.
template <class To, class From>
inline void move_each_row(To to, From from, std::int64_t bytes, std::int64_t rows) noexcept {
  if (bytes > 128)
    for (std::int64_t row = 0; row < rows; ++row) std::memmove(to(row), from(row), static_cast<std::size_t>(bytes));
  else if (bytes >= 64) move_words<Wide<64>::Word>(to, from, bytes, rows);
  else if (bytes >= 32) move_words<Wide<32>::Word>(to, from, bytes, rows);
  else if (bytes >= 16) move_words<Wide<16>::Word>(to, from, bytes, rows);
  else if (bytes >= 8) move_words<std::uint64_t>(to, from, bytes, rows);
  else if (bytes >= 4) move_words<std::uint32_t>(to, from, bytes, rows);
  else if (bytes >= 2) move_words<std::uint16_t>(to, from, bytes, rows);
  else move_words<std::uint8_t>(to, from, bytes, rows);
}

}  // namespace dlbridge::nd::host_kernels
