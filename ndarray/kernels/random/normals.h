// Laws of one block's normal numbers, or of their directions.
#pragma once

#include "ndarray/kernels/random/variates.h"

namespace dlbridge::nd::philox {

// The inverse Gaussian distribution of mean a and scale b, by Michael, Schucany and Haas (1976): the roots of a
// quadratic equation, whose quotients by the mean are r and 1 / r. Both without a difference of large numbers.
struct Wald {
  static constexpr bool kNormal = true;
  double mean, factor;

  DLBRIDGE_ND_HD static Wald of(const double (&p)[kParameters]) noexcept { return {p[0], sqrt(2 * p[0]) / sqrt(p[1])}; }
  DLBRIDGE_ND_HD double draw(const NormalBlock& block, const Keys& keys, std::uint64_t counter) const noexcept {
    const double h = fabs(block.x) * factor, root = 2 / (sqrt(4 + h * h) + h), r = root * root;
    // The lower bits of the angle, as for a gamma variate. r may be smaller than the least of 32 bits.
    const double u = block.word[2] != 0 ? block.word[2] * 0x1p-32 : inner_unit(generate(keys, counter, 1), 0) * 0x1p-32;
    const bool large = u * (1 + r) < r;  // as often as not; a quotient costs less than a branch
    return mean * ((large ? 1 : r) / (large ? r : 1));
  }
};

// By Best and Fisher (1979), one block a try: angles of the wrapped Cauchy distribution, each half of whose tangent is
// that of a uniform direction times a factor. Where the concentration is so large that the formulas cancel, the normal
// distribution that it has become.
struct VonMises {
  static constexpr double kLeast = 1e-8, kSharp = 1e6, kPi = 3.14159265358979323846;
  double mu, kappa, s, excess, factor;  // excess: kappa * (s * s - 1)

  DLBRIDGE_ND_HD static VonMises of(const double (&p)[kParameters]) noexcept {
    const double k = p[0] >= kLeast ? p[0] : kLeast, mu = fabs(p[1]) <= kPi ? p[1] : remainder(p[1], 2 * kPi);
    const double root = sqrt(1 + sqrt(1 + 4 * k * k)), rho = 2 * k / (root * (root + kRootTwo));
    const double less = 1 - rho, more = 1 + rho, half = less * more / (2 * rho);
    return {mu, k, (1 + rho * rho) / (2 * rho), k * half * half, less / more};
  }
  DLBRIDGE_ND_HD double draw(Block block, const Keys& keys, std::uint64_t counter) const noexcept {
    if (!(kappa <= kSharp)) return around(sqrt(2 / kappa) * NormalBlock(block).x);
    for (std::uint64_t high = 0;; block = generate(keys, counter, ++high)) {
      double x, y;
      unit_circle(block.word[2], block.word[3], x, y);
      const double v = open_unit(block.word[0], block.word[1]), distance = excess / (s + x);
      if (v > distance * (2 - distance) && log(distance / v) + 1 < distance) continue;
      return around(2 * atan(factor * (x < 0 ? (1 - x) / y : y / (1 + x))));
    }
  }

 private:
  // In [-pi, pi].
  DLBRIDGE_ND_HD double around(double angle) const noexcept {
    const double sum = mu + angle;
    return sum > kPi ? sum - 2 * kPi : sum < -kPi ? sum + 2 * kPi : sum;
  }
};

}  // namespace dlbridge::nd::philox
