// Counts of few numbers, which equal neighbours would wait for one another to raise.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// Numbers from a table to the next: at distances of pages, the machine takes a count for one of another table's.
constexpr std::int64_t table_step(std::int64_t size) noexcept { return size + 72; }

// Calls count(i, table), which raises one number of a table of `size` of them, for each i below n, with kTables tables
// in turn: `counts`, which becomes their sum, and `others`, kTables - 1 steps of zeros.
template <int kTables, class Count>
void count_in_tables(std::int64_t n, std::int64_t size, std::int64_t* counts, std::int64_t* others,
                     Count count) noexcept {
  const std::int64_t step = table_step(size);
  std::int64_t i = 0;
  for (; i + kTables <= n; i += kTables) {
    count(i, counts);
    for (int t = 1; t < kTables; ++t) count(i + t, others + (t - 1) * step);
  }
  for (; i < n; ++i) count(i, counts);
  for (int t = 1; t < kTables; ++t)
    for (std::int64_t value = 0; value < size; ++value) counts[value] += others[(t - 1) * step + value];
}

}  // namespace dlbridge::nd::host_kernels
