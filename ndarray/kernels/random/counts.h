// Variates of counts: Poisson's, those of a gamma variate as the mean (negative binomial), Zipf's and Fisher's (of the
// logarithmic series).
#pragma once

#include "ndarray/kernels/random/count_probabilities.h"
#include "ndarray/kernels/random/gammas.h"

namespace dlbridge::nd::philox {

// Means below 10: by the inverse of the sums of the probabilities. Larger ones: transformed rejection with a squeeze
// (Hoermann 1993, PTRS), four of five tries of which need no logarithm.
struct Poisson {
  static constexpr double kLargestMean = 0x1p62;
  static constexpr int kMostSteps = 64;  // with a mean below 10, more events have a probability below 1e-30
  double mean = 0;
  double a = 0, b = 0, squeeze = 0, height = 0;  // of the transformation
  double none = 1;                               // the probability of no event

  DLBRIDGE_ND_HD static Poisson of(const double (&p)[kParameters]) noexcept { return of(p[0]); }
  DLBRIDGE_ND_HD static Poisson of(double lambda) noexcept {
    if (!(lambda >= 10)) return {lambda, 0, 0, 0, 0, exp(-lambda)};
    const double m = lambda < kLargestMean ? lambda : kLargestMean, width = product_plus(2.53, sqrt(m), 0.931);
    const double slope = product_plus(0.02483, width, -0.059);
    return {m, slope, width, 0.9277 - 3.6224 / (width - 2), 1.1239 + 1.1328 / (width - 3.4), 0};
  }
  DLBRIDGE_ND_HD double draw(Block block, const Keys& keys, std::uint64_t counter,
                             std::uint64_t high = 0) const noexcept {
    if (!(mean >= 10)) return by_inversion(unit<double>(block, 0));
    for (;; block = generate(keys, counter, ++high)) {
      const double u = unit<double>(block, 0) - 0.5, v = open_unit(word64(block, 1)), rest = 0.5 - fabs(u);
      const double k = floor(product_plus(2 * a / rest + b, u, mean) + 0.43);
      if (rest >= 0.07 && v <= squeeze) return k;
      if (k < 0 || k > kLargestCount || (rest < 0.013 && v > rest)) continue;
      if (log(v * height / (a / (rest * rest) + b)) <= log_poisson(k, mean)) return k;
    }
  }

 private:
  DLBRIDGE_ND_HD double by_inversion(double u) const noexcept {
    int k = 0;
    for (double p = none; u >= p && k < kMostSteps; p *= mean / k) {
      u -= p;
      ++k;
    }
    return k;
  }
};

// How often one of two outcomes comes before the other has come a number of times.
struct NegativeBinomial {
  static constexpr bool kNormal = true;
  StandardGamma gamma;
  double scale;

  DLBRIDGE_ND_HD static NegativeBinomial of(const double (&p)[kParameters]) noexcept {
    return {StandardGamma::of(p[0]), p[1]};
  }
  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter) const noexcept {
    const Poisson count = Poisson::of(gamma.variate(block, keys, counter, 0, scale));
    return count.draw(generate(keys, counter, kSecond), keys, counter, kSecond);
  }
};

// Of the integers that an int64 holds, by rejection from the integer parts of Pareto variates (Devroye 1986, X.6).
struct Zipf {
  double power = 1;   // a - 1
  double within = 1;  // the probability of a Pareto variate that an int64 holds,
  double one = 0.5;   // and of one below 2

  DLBRIDGE_ND_HD static Zipf of(const double (&p)[kParameters]) noexcept {
    const double a = p[0], logarithm = 43.66827237527655;  // of the largest integer
    return {a - 1, -expm1((1 - a) * logarithm), -expm1((1 - a) * 0.6931471805599453)};
  }
  DLBRIDGE_ND_HD double draw(Block block, const Keys& keys, std::uint64_t counter) const noexcept {
    for (std::uint64_t high = 0;; block = generate(keys, counter, ++high)) {
      const double u = within * unit<double>(block, 0);
      if (!(u >= one)) return 1;
      // The difference is exact enough unless the power is next to nothing; its logarithm is the faster one.
      const double x = floor(exp((power < 0.01 ? log1p(-u) : log(1 - u)) / -power));
      const double k = x < 1 ? 1 : x < kLargestCount ? x : kLargestCount;
      if (holds(unit<double>(block, 1), k)) return k;
    }
  }

 private:
  // Whether v k (1 - (1 + 1 / k) ** -power) <= one. Taylor's series, whose sums lie above and below in turn, say it for
  // most.
  DLBRIDGE_ND_HD bool holds(double v, double k) const noexcept {
    const double r = 1 / k, second = 0.5 * (power + 1) * r, third = second * (power + 2) * r * (1.0 / 3);
    if (v * power * (1 - second + third) <= one) return true;
    if (v * power * (1 - second) > one) return false;
    return !(v * k * -expm1(-power * log1p(r)) > one);
  }
};

// By Kemp (1981, LK): a geometric variate whose parameter q is itself drawn.
struct Logseries {
  double p, logarithm;  // of 1 - p

  DLBRIDGE_ND_HD static Logseries of(const double (&p)[kParameters]) noexcept { return {p[0], log1p(-p[0])}; }
  DLBRIDGE_ND_HD double draw(const Block& block, const Keys&, std::uint64_t) const noexcept {
    const double v = inner_unit(block, 0);
    if (!(v < p)) return 1;
    const double power = logarithm * inner_unit(block, 1), q = -expm1(power);
    if (!(v <= q * q)) return v <= q ? 2 : 1;
    return floor(1 + log(v) / (q < 0.5 ? log(q) : log1p(-exp(power))));
  }
};

}  // namespace dlbridge::nd::philox
