// Counts of few numbers, which equal neighbours would wait for one another to raise.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// Calls count(i, table), which raises one number of a table of `size` of them, for each i below n, with kTables tables
// in turn; their sums are added to `counts`. size <= kMost.
template <int kTables, std::int64_t kMost, class Count>
void count_in_tables(std::int64_t n, std::int64_t size, std::int64_t* counts, Count count) noexcept {
  std::int64_t tables[kTables][kMost] = {};
  std::int64_t i = 0;
  for (; i + kTables <= n; i += kTables)
    for (int t = 0; t < kTables; ++t) count(i + t, tables[t]);
  for (; i < n; ++i) count(i, tables[0]);
  for (const auto& table : tables)
    for (std::int64_t value = 0; value < size; ++value) counts[value] += table[value];
}

}  // namespace dlbridge::nd::host_kernels
