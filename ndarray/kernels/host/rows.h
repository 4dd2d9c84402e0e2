// Rows left out of arrays and put into them on the host, one copy each: (outer, n, bytes), dense.
#pragma once

#include <cstdint>
#include <span>

namespace dlbridge::nd::host_kernels {

struct Rows {
  std::int64_t outer;  // how often there are n rows
  std::int64_t n;
  std::int64_t bytes;  // of a row
};
// The rows that are not marked, `kept` of each n.
void drop_rows(const void* x, const Rows& rows, const std::uint8_t* dropped, std::int64_t kept, void* out) noexcept;
// A row before each of some rows, which rise and may repeat: all of the element at `value`.
void insert_rows(const void* x, const Rows& rows, std::span<const std::int64_t> before, const void* value,
                 std::int64_t itemsize, void* out) noexcept;

}  // namespace dlbridge::nd::host_kernels
