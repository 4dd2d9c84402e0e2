// Tables of the sums of the probabilities of counts, from which numbers of one law are made faster than by rejection.
#pragma once

#include <cstdint>

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/random/count_probabilities.h"

namespace dlbridge::nd::host_kernels {

enum class CountLaw { kPoisson, kBinomial, kHypergeometric };

// A law with its parameters, as many as it has; counts among them are cut to integers.
struct LogConcave {
  LogConcave(CountLaw law, const double (&parameters)[kParameters]) noexcept;
  // The logarithm of the probability of k.
  double log_probability(double k) const noexcept;

  CountLaw law;
  double of[kParameters];
  philox::CountSpan span;
  double peak;  // the probability of the mode
};

// Where a table of sums begins, and how many entries it has; beyond it there is no probability to speak of.
struct TableSpan {
  double first, entries;
};
TableSpan table_span(const LogConcave& law) noexcept;

// sums[i]: the probability of at most first + i, of `entries` counts.
void sum_probabilities(const LogConcave& law, double first, std::int64_t entries, double* sums) noexcept;

}  // namespace dlbridge::nd::host_kernels
