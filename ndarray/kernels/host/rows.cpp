#include "ndarray/kernels/host/rows.h"

#include <algorithm>
#include <cstring>

#include "ndarray/kernels/host/move_rows.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kFewRows = 64;
constexpr std::int64_t kShortRow = 128;  // bytes: longer ones are copied by calls

std::size_t length(std::int64_t bytes) noexcept { return static_cast<std::size_t>(bytes); }

// A value until `bytes` are full: each copy is of all that is there.
void repeat(const void* value, std::int64_t itemsize, char* to, std::int64_t bytes) noexcept {
  std::memcpy(to, value, length(std::min(itemsize, bytes)));
  for (std::int64_t done = itemsize; done < bytes; done *= 2)
    std::memcpy(to + done, to, length(std::min(done, bytes - done)));
}

template <std::size_t kBytes>
void move_element(char* to, std::int64_t at, const char* from, std::int64_t place) noexcept {
  constexpr auto kStep = static_cast<std::int64_t>(kBytes);
  std::memcpy(to + at * kStep, from + place * kStep, kBytes);
}

// Without a branch for each row: what is dropped is written over by the next one.
template <std::size_t kBytes>
void drop_elements(const char* x, std::int64_t n, const std::uint8_t* dropped, std::int64_t kept, char* out) noexcept {
  constexpr std::int64_t kGroup = 16, kStep = kBytes;
  std::int64_t to = 0, i = 0;
  for (; i + kGroup <= n && to + kGroup <= kept; i += kGroup) {
    std::uint64_t marks[kGroup / 8];
    std::memcpy(marks, dropped + i, sizeof marks);
    if ((marks[0] | marks[1]) == 0) {
      std::memcpy(out + to * kStep, x + i * kStep, kGroup * kBytes);
      to += kGroup;
      continue;
    }
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < kGroup; ++k) {
      move_element<kBytes>(out, to, x, i + k);
      to += 1 - dropped[i + k];
    }
  }
  for (; i < n && to < kept; ++i) {
    move_element<kBytes>(out, to, x, i);
    to += 1 - dropped[i];
  }
}

// Few rows of each of many arrays: what is kept of all arrays is moved run by run, for as many arrays at a time as stay
// in the first cache.
void keep_runs(const char* x, const Rows& rows, const std::uint8_t* dropped, std::int64_t kept, char* out) noexcept {
  constexpr std::int64_t kBlockBytes = 8192;
  const std::int64_t from_step = rows.n * rows.bytes, to_step = kept * rows.bytes;
  const std::int64_t block = std::max<std::int64_t>(kBlockBytes / from_step, 1);
  for (std::int64_t done = 0; done < rows.outer; done += block, x += block * from_step, out += block * to_step) {
    char* to = out;
    for (std::int64_t first = 0, end = 0; first < rows.n; first = end + 1) {
      for (end = first; end < rows.n && dropped[end] == 0; ++end) {
      }
      if (end == first) continue;
      const char* const from = x + first * rows.bytes;
      const std::int64_t bytes = (end - first) * rows.bytes;
      move_each_row([=](std::int64_t k) { return to + k * to_step; },
                    [=](std::int64_t k) { return from + k * from_step; }, bytes, std::min(block, rows.outer - done));
      to += bytes;
    }
  }
}

// Short rows part by part: as one where none of a part is dropped.
void drop_short_rows(const char* x, const Rows& rows, const std::uint8_t* dropped, char* out) noexcept {
  constexpr std::int64_t kPart = 256;
  for (std::int64_t first = 0; first < rows.n; first += kPart, x += kPart * rows.bytes) {
    const std::int64_t n = std::min(kPart, rows.n - first);
    std::int64_t places[kPart], found = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      places[found] = i * rows.bytes;
      found += 1 - dropped[first + i];
    }
    if (found == n) std::memcpy(out, x, length(n * rows.bytes));
    else
      move_each_row([&](std::int64_t row) { return out + row * rows.bytes; },
                    [&](std::int64_t row) { return x + places[row]; }, rows.bytes, found);
    out += found * rows.bytes;
  }
}

void drop_runs(const char* x, const Rows& rows, const std::uint8_t* dropped, char* out) noexcept {
  for (std::int64_t i = 0; i < rows.n;) {
    if (dropped[i] != 0) {
      ++i;
      continue;
    }
    const std::int64_t first = i;
    while (i < rows.n && dropped[i] == 0) ++i;
    std::memcpy(out, x + first * rows.bytes, length((i - first) * rows.bytes));
    out += (i - first) * rows.bytes;
  }
}

}  // namespace

void drop_rows(const void* x, const Rows& rows, const std::uint8_t* dropped, std::int64_t kept, void* out) noexcept {
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(out);
  if (kept == 0 || rows.bytes == 0) return;
  if (rows.n <= kFewRows) return keep_runs(from, rows, dropped, kept, to);
  const auto drop = [&]<std::size_t kBytes>() {
    for (std::int64_t k = 0; k < rows.outer; ++k, from += rows.n * rows.bytes, to += kept * rows.bytes)
      drop_elements<kBytes>(from, rows.n, dropped, kept, to);
  };
  switch (rows.bytes) {
    case 1: return drop.template operator()<1>();
    case 2: return drop.template operator()<2>();
    case 4: return drop.template operator()<4>();
    case 8: return drop.template operator()<8>();
    case 16: return drop.template operator()<16>();
    default: break;
  }
  for (std::int64_t k = 0; k < rows.outer; ++k, from += rows.n * rows.bytes, to += kept * rows.bytes)
    rows.bytes <= kShortRow ? drop_short_rows(from, rows, dropped, to) : drop_runs(from, rows, dropped, to);
}

void insert_rows(const void* x, const Rows& rows, std::span<const std::int64_t> before, const void* value,
                 std::int64_t itemsize, void* out) noexcept {
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(out);
  const auto copy = [&](std::int64_t count) {
    if (count * rows.bytes == 0) return;
    std::memcpy(to, from, length(count * rows.bytes));
    from += count * rows.bytes;
    to += count * rows.bytes;
  };
  for (std::int64_t k = 0; k < rows.outer; ++k) {
    std::int64_t done = 0;
    for (const std::int64_t place : before) {
      copy(place - done);
      done = place;
      repeat(value, itemsize, to, rows.bytes);
      to += rows.bytes;
    }
    copy(rows.n - done);
  }
}

}  // namespace dlbridge::nd::host_kernels
