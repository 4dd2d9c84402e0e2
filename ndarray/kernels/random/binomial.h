// Counts of trials: binomial and hypergeometric variates.
#pragma once

#include "ndarray/kernels/random/count_probabilities.h"
#include "ndarray/kernels/random/variates.h"

namespace dlbridge::nd::philox {

// Means below 10 of the rarer outcome: by the inverse of the sums of the probabilities. Larger ones: transformed
// rejection with a squeeze (Hoermann 1993, BTRS).
struct Binomial {
  static constexpr int kMostSteps = 64;  // with a mean below 10, more have a probability below 1e-30
  double n, p;                           // of the rarer outcome
  bool swapped;
  double a = 0, b = 0, centre = 0, squeeze = 0, height = 0, mode = 0;  // of the transformation

  DLBRIDGE_ND_HD static Binomial of(const double (&p)[kParameters]) noexcept { return of(p[0], p[1]); }
  DLBRIDGE_ND_HD static Binomial of(double trials, double chance) noexcept {
    const bool swapped = chance > 0.5;
    const double n = trials > 0 ? floor(trials) : 0, p = swapped ? 1 - chance : chance > 0 ? chance : 0;
    if (!(n * p >= 10 && n <= 0x1p62)) return {n, p, swapped};
    const double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation;
    return {n,
            p,
            swapped,
            -0.0873 + 0.0248 * b + 0.01 * p,
            b,
            n * p + 0.5,
            0.92 - 4.2 / b,
            (2.83 + 5.1 / b) * deviation,
            floor((n + 1) * p)};
  }
  DLBRIDGE_ND_HD double draw(Block block, const Keys& keys, std::uint64_t counter,
                             std::uint64_t high = 0) const noexcept {
    const double k = b > 0 ? by_rejection(block, keys, counter, high) : by_inversion(unit<double>(block, 0));
    return swapped ? n - k : k;
  }

 private:
  DLBRIDGE_ND_HD double by_inversion(double u) const noexcept {
    const double odds = p / (1 - p);
    double k = 0, probability = exp(n * log1p(-p));
    while (u >= probability && k < n && k < kMostSteps) {
      u -= probability;
      ++k;
      probability *= odds * (n - k + 1) / k;
    }
    return k;
  }
  DLBRIDGE_ND_HD double by_rejection(Block block, const Keys& keys, std::uint64_t counter,
                                     std::uint64_t high) const noexcept {
    for (;; block = generate(keys, counter, ++high)) {
      const double u = unit<double>(block, 0) - 0.5, v = open_unit(word64(block, 1)), rest = 0.5 - fabs(u);
      const double k = floor(product_plus(2 * a / rest + b, u, centre));
      if (rest >= 0.07 && v <= squeeze) return k;
      if (!(k >= 0 && k <= n)) continue;
      if (log(v * height / (a / (rest * rest) + b)) <= log_binomial_part(k, n, p) - log_binomial_part(mode, n, p))
        return k;
    }
  }
};

// Of the rarer colour among the fewer of those drawn and those left. Where either are few, by the inverse of the sums
// of the probabilities; else by rejection under min(1, exp(1 - peak * |k - mode|)) times the peak, as every log-concave
// law (Devroye 1987).
struct Hypergeometric {
  static constexpr double kFew = 32;
  double total, rare, wanted, drawn;
  bool swapped, left;
  double none = 0;  // the probability of no rare one, or 0
  double mode = 0, height = 0, peak = 0;

  DLBRIDGE_ND_HD static Hypergeometric of(const double (&p)[kParameters]) noexcept {
    const double good = whole(p[0]), bad = whole(p[1]), total = good + bad;
    const double wanted = whole(p[2]) < total ? whole(p[2]) : total;
    const bool swapped = good > bad, left = wanted > total / 2;
    Hypergeometric made{total, swapped ? bad : good, wanted, left ? total - wanted : wanted, swapped, left};
    if (made.few() <= kFew) {
      made.none = 1;
      for (double i = 0; i < made.few(); ++i) made.none *= (total - made.many() - i) / (total - i);
    } else {
      made.mode = floor((made.drawn + 1) * (made.rare + 1) / (total + 2));
      made.height = made.log_part(made.mode);
      made.peak = exp(log_hypergeometric(made.mode, made.rare, total - made.rare, made.drawn));
    }
    return made;
  }
  DLBRIDGE_ND_HD double draw(const Block& block, const Keys& keys, std::uint64_t counter) const noexcept {
    const double k = none > 0 ? by_inversion(unit<double>(block, 0)) : by_rejection(block, keys, counter);
    const double of_rare = left ? rare - k : k;
    return swapped ? wanted - of_rare : of_rare;
  }

 private:
  DLBRIDGE_ND_HD static double whole(double x) noexcept { return x >= 0 && x <= 0x1p62 ? floor(x) : 0; }
  DLBRIDGE_ND_HD double few() const noexcept { return rare < drawn ? rare : drawn; }
  DLBRIDGE_ND_HD double many() const noexcept { return rare < drawn ? drawn : rare; }
  DLBRIDGE_ND_HD double log_part(double k) const noexcept {
    return log_hypergeometric_part(k, rare, total - rare, drawn);
  }
  DLBRIDGE_ND_HD double by_inversion(double u) const noexcept {
    const double most = few(), other = many();
    double k = 0;
    for (double probability = none; u >= probability && k < most; ++k) {
      u -= probability;
      probability *= (most - k) * (other - k) / ((k + 1) * (total - other - most + k + 1));
    }
    return k;
  }
  DLBRIDGE_ND_HD double by_rejection(Block block, const Keys& keys, std::uint64_t counter) const noexcept {
    const double width = 1 + peak / 2, most = few();
    for (std::uint64_t high = 0;; block = generate(keys, counter, ++high)) {
      // A bit that the first number does not take says on which side of the mode.
      const double t = unit<double>(block, 0) * (1 + width), beyond = t <= width ? 0 : -log(1 + width - t);
      const double y = ((t <= width ? t : width) + beyond) / peak;
      const double k = mode + ((block.word[0] & 1) != 0 ? 1 : -1) * rint(y);
      if (!(k >= 0 && k <= most)) continue;
      if (log(open_unit(word64(block, 1))) - beyond <= log_part(k) - height) return k;
    }
  }
};

}  // namespace dlbridge::nd::philox
