// Counts of log-concave distributions on the host, where a kernel of its own spares some hundred passes over memory:
// the formulas and the random words of python/dlbridge/nd/_counts.py, which says what they are.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

enum class CountLaw { kPoisson, kBinomial, kHypergeometric };

inline constexpr int kMostParameters = 3;

// A law with its parameters, as many as it has; counts among them are cut to integers.
struct LogConcave {
  LogConcave(CountLaw law, const double (&parameters)[kMostParameters]) noexcept;
  // The logarithm of the probability of k.
  double log_probability(double k) const noexcept;

  CountLaw law;
  double of[kMostParameters];
  double low, high, mode;  // the least count, the largest and a likeliest one
  double height, peak;     // of the mode: the logarithm of its probability, and that
};

// Where a table of sums begins, and how many entries it has; beyond it there is no probability to speak of.
struct TableSpan {
  double first, entries;
};
TableSpan table_span(const LogConcave& law) noexcept;

// sums[i]: the probability of at most first + i, of `entries` counts.
void sum_probabilities(const LogConcave& law, double first, std::int64_t entries, double* sums) noexcept;

// By rejection: out[i] for i < n from the parameters[j][i], or from parameters[j][0] where there is one for all. False:
// there is no memory.
struct CountsArgs {
  CountLaw law;
  const double* parameters[kMostParameters];
  bool one_for_all[kMostParameters];
  std::uint64_t seed;
  std::int64_t n;
  double* out;
};
bool draw_counts(const CountsArgs& args) noexcept;

}  // namespace dlbridge::nd::host_kernels
