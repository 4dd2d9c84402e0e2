// Logarithms of the probabilities of counts, as sums of two smooth functions, so that no large numbers cancel (Loader
// 2000): the rest of Stirling's formula, and deviance(k, mean) = k log(k / mean) + mean - k.
#pragma once

#include <cmath>
#include <limits>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd::philox {

// log(k!) - (k log k - k).
DLBRIDGE_ND_HD inline double stirling_rest(double k) noexcept {
  if (k < 16) {
    double factorial = 1;
    for (int i = 2; i <= static_cast<int>(k); ++i) factorial *= i;
    return k > 0 ? log(factorial) - k * log(k) + k : 0;
  }
  const double y = 1 / (k * k);
  const double series = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188)))) / k;
  return 0.5 * log(6.283185307179586 * k) + series;
}

DLBRIDGE_ND_HD inline double deviance(double k, double mean) noexcept {
  if (!(mean > 0)) return k > 0 ? std::numeric_limits<double>::infinity() : 0;
  if (!(k > 0)) return mean;
  const double t = (k - mean) / mean;
  return mean * ((1 + t) * log1p(t) - t);
}

DLBRIDGE_ND_HD inline double log_poisson(double k, double mean) noexcept {
  return -deviance(k, mean) - stirling_rest(k);
}

// The part in which k is.
DLBRIDGE_ND_HD inline double log_binomial_part(double k, double n, double p) noexcept {
  return -stirling_rest(k) - stirling_rest(n - k) - deviance(k, n * p) - deviance(n - k, n * (1 - p));
}
DLBRIDGE_ND_HD inline double log_binomial(double k, double n, double p) noexcept {
  return stirling_rest(n) + log_binomial_part(k, n, p);
}

DLBRIDGE_ND_HD inline double log_hypergeometric_part(double k, double good, double bad, double drawn) noexcept {
  const double total = good + bad, p = drawn / (total > 0 ? total : 1);
  return log_binomial_part(k, good, p) + log_binomial_part(drawn - k, bad, p);
}
DLBRIDGE_ND_HD inline double log_hypergeometric(double k, double good, double bad, double drawn) noexcept {
  const double total = good + bad, p = drawn / (total > 0 ? total : 1);
  const double others = stirling_rest(good) + stirling_rest(bad) - log_binomial(drawn, total, p);
  return log_hypergeometric_part(k, good, bad, drawn) + others;
}

// The least count, the largest and a likeliest one.
struct CountSpan {
  double low, high, mode;
};

DLBRIDGE_ND_HD inline CountSpan hypergeometric_span(double good, double bad, double drawn) noexcept {
  const double low = drawn > bad ? drawn - bad : 0, high = drawn < good ? drawn : good;
  const double mode = floor((drawn + 1) * (good + 1) / (good + bad + 2));
  return {low, high, mode < low ? low : mode > high ? high : mode};
}

}  // namespace dlbridge::nd::philox
