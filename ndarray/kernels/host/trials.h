// Trials with a few outcomes on the host: how often each outcome was, without the outcomes themselves.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

inline constexpr std::int64_t kMostTrials = 1024;

// counts[row][k]: how many of the row's `trials` uniform numbers have k of the increasing `sums`, one less than there
// are outcomes, at or below them. The numbers are Philox's, from `offset` on, row after row.
struct TrialsArgs {
  const double* sums;
  std::int64_t outcomes, trials, rows;
  std::uint64_t seed, offset;
  std::int64_t* counts;
};
void count_trials(const TrialsArgs& args) noexcept;

}  // namespace dlbridge::nd::host_kernels
