// Noncentral chi-squared variates, and Fisher's quotients of them.
#pragma once

#include "ndarray/kernels/random/counts.h"
#include "ndarray/kernels/random/gammas.h"

namespace dlbridge::nd::philox {

// With more than one degree of freedom, one of them is the square of a normal number that is not centred. Else twice a
// Poisson variate more degrees of freedom.
struct NoncentralChisquare {
  static constexpr bool kNormal = true;
  double half, root;
  StandardGamma rest;
  Poisson events;

  DLBRIDGE_ND_HD static NoncentralChisquare of(const double (&p)[kParameters]) noexcept {
    return {p[0] / 2, sqrt(p[1]), StandardGamma::of((p[0] - 1) / 2), Poisson::of(p[1] / 2)};
  }
  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter) const noexcept {
    if (half > 0.5) {
      const double x = rest.variate(block, keys, counter, 0, 2), y = kRootTwo * block.y + root;
      return x + y * y;
    }
    const double k = events.draw(generate(keys, counter, kSecond), keys, counter, kSecond);
    return StandardGamma::of(half + k).variate(block, keys, counter, 0, 2);
  }
};

struct NoncentralF {
  static constexpr bool kNormal = true;
  NoncentralChisquare above;
  StandardGamma below;
  double factor;

  DLBRIDGE_ND_HD static NoncentralF of(const double (&p)[kParameters]) noexcept {
    const double of_above[kParameters] = {p[0], p[2], 0};
    return {NoncentralChisquare::of(of_above), StandardGamma::of(p[1] / 2), p[1] / p[0]};
  }
  DLBRIDGE_ND_HD double draw(const NormalBlock& block, const Keys& keys, std::uint64_t counter) const noexcept {
    NormalBlock other = generate(keys, counter, kThird);
    return factor * (above.draw(block, keys, counter) / below.variate(other, keys, counter, kThird, 2));
  }
};

}  // namespace dlbridge::nd::philox
