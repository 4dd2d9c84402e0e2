#include "ndarray/kernels/host/rows.h"

#include <cstring>

namespace dlbridge::nd::host_kernels {
namespace {

std::size_t length(std::int64_t bytes) noexcept { return static_cast<std::size_t>(bytes); }

// Without a branch for each row: what is dropped is written over by the next one.
template <std::size_t kBytes>
void drop_elements(const char* x, std::int64_t n, const std::uint8_t* dropped, std::int64_t kept, char* out) noexcept {
  std::int64_t to = 0;
  for (std::int64_t i = 0; i < n && to < kept; ++i) {
    std::memcpy(out + to * static_cast<std::int64_t>(kBytes), x + i * static_cast<std::int64_t>(kBytes), kBytes);
    to += 1 - dropped[i];
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
  for (std::int64_t k = 0; k < rows.outer; ++k, from += rows.n * rows.bytes, to += kept * rows.bytes) {
    switch (rows.bytes) {
      case 1: drop_elements<1>(from, rows.n, dropped, kept, to); break;
      case 2: drop_elements<2>(from, rows.n, dropped, kept, to); break;
      case 4: drop_elements<4>(from, rows.n, dropped, kept, to); break;
      case 8: drop_elements<8>(from, rows.n, dropped, kept, to); break;
      case 16: drop_elements<16>(from, rows.n, dropped, kept, to); break;
      default: drop_runs(from, rows, dropped, to);
    }
  }
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
      for (std::int64_t byte = 0; byte < rows.bytes; byte += itemsize, to += itemsize)
        std::memcpy(to, value, length(itemsize));
    }
    copy(rows.n - done);
  }
}

}  // namespace dlbridge::nd::host_kernels
