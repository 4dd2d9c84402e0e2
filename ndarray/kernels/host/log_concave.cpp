#include "ndarray/kernels/host/log_concave.h"

#include <algorithm>
#include <cmath>

#include "ndarray/kernels/random/variates.h"

namespace dlbridge::nd::host_kernels {

LogConcave::LogConcave(CountLaw kind, const double (&parameters)[kParameters]) noexcept : law(kind) {
  std::copy_n(parameters, kParameters, of);
  switch (law) {
    case CountLaw::kPoisson: span = {0, philox::kLargestCount, std::floor(of[0])}; break;
    case CountLaw::kBinomial:
      of[0] = std::floor(of[0]);
      span = {0, of[0], std::min(std::floor((of[0] + 1) * of[1]), of[0])};
      break;
    case CountLaw::kHypergeometric:
      for (double& count : of) count = std::floor(count);
      span = philox::hypergeometric_span(of[0], of[1], of[2]);
      break;
  }
  peak = std::exp(log_probability(span.mode));
}

double LogConcave::log_probability(double k) const noexcept {
  switch (law) {
    case CountLaw::kPoisson: return philox::log_poisson(k, of[0]);
    case CountLaw::kBinomial: return philox::log_binomial(k, of[0], of[1]);
    default: return philox::log_hypergeometric(k, of[0], of[1], of[2]);
  }
}

TableSpan table_span(const LogConcave& law) noexcept {
  const double reach = 41 / law.peak;
  const double first = std::floor(std::max(law.span.low, law.span.mode - reach));
  return {first, std::floor(std::min(law.span.high, law.span.mode + reach)) - first + 1};
}

void sum_probabilities(const LogConcave& law, double first, std::int64_t entries, double* sums) noexcept {
  double sum = 0;
  for (std::int64_t i = 0; i < entries; ++i)
    sums[i] = sum += std::exp(law.log_probability(first + static_cast<double>(i)));
  for (std::int64_t i = 0; i < entries; ++i) sums[i] /= sum;
}

}  // namespace dlbridge::nd::host_kernels
