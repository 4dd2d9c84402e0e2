// The gamma distribution and those that are made of its variates.
#pragma once

#include "ndarray/kernels/random/variates.h"

namespace dlbridge::nd::philox {

// The high half of the block of the exponents of shapes below 1.
inline constexpr std::uint64_t kExponents = ~std::uint64_t{0};

// Variates of scale 1 as d * v / exp(less), by Marsaglia and Tsang (2000): a normal number and 32 bits a try. Shapes
// below 1 are those of one more, times u ** (1 / shape), which underflows where the shape is small: its logarithm does
// not.
struct StandardGamma {
  double shape = 1, d = 0, c = 0;

  DLBRIDGE_ND_HD static StandardGamma of(double given) noexcept {
    const double shape = given >= 0 ? given : 0, d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
    return {shape, d, 1 / sqrt(9 * d)};
  }
  // v of a normal number of variance 1/2, and whether it is accepted.
  DLBRIDGE_ND_HD bool accepts(double normal, std::uint32_t bits, double& v) const noexcept {
    const double x = normal * kRootTwo, root = 1 + x * c;
    v = root * root * root;
    const double u = (bits + 0.5) * 0x1p-32, square = x * x;
    // The first test holds for all but 2 % of the numbers, and needs no logarithm.
    return v > 0 && (u < 1 - 0.0331 * square * square || log(u) < 0.5 * square + d * (1 - v + log(v)));
  }
  // v of the first normal number of the block, which has the high half `high`, or of the first one that is accepted of
  // those after it; `block` is its block then. The lower 32 bits of the angle move the number by 2^-32, and decide.
  DLBRIDGE_ND_HD double draw(NormalBlock& block, const Keys& keys, std::uint64_t counter,
                             std::uint64_t high) const noexcept {
    double v;
    while (!accepts(block.x, block.word[2], v)) block = generate(keys, counter, ++high);
    return v;
  }
  // By the number in a place of a block that no try takes.
  DLBRIDGE_ND_HD double less(const Block& block, int place) const noexcept {
    return shape < 1 ? minus_log(open_unit(word64(block, place))) / shape : 0;
  }
  DLBRIDGE_ND_HD double variate(NormalBlock& block, const Keys& keys, std::uint64_t counter, std::uint64_t high,
                                double scale) const noexcept {
    const double x = scale * (d * draw(block, keys, counter, high));
    return shape < 1 ? x * exp(-less(generate(keys, counter, ~high), 0)) : x;
  }
};

struct Gamma {
  static constexpr bool kNormal = true;
  StandardGamma gamma;
  double scale;

  DLBRIDGE_ND_HD static Gamma of(const double (&p)[kParameters]) noexcept { return {StandardGamma::of(p[0]), p[1]}; }
  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter) const noexcept {
    return gamma.variate(block, keys, counter, 0, scale);
  }
};

struct LogGamma {
  static constexpr bool kNormal = true;
  StandardGamma gamma;

  DLBRIDGE_ND_HD static LogGamma of(const double (&p)[kParameters]) noexcept { return {StandardGamma::of(p[0])}; }
  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter) const noexcept {
    const double x = log(gamma.d * gamma.draw(block, keys, counter, 0));
    return gamma.shape < 1 ? x - gamma.less(generate(keys, counter, kExponents), 0) : x;
  }
};

// One gamma variate by another, times a factor over top.d / bottom.d. A block's two normal numbers serve both; of the
// 32 bits that decide on the second, nothing else takes the first 11.
struct GammaQuotient {
  StandardGamma top, bottom;
  double factor;

  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter) const noexcept {
    double above;
    if (!top.accepts(block.y, block.word[0] << 21 | block.word[0] >> 11, above)) {
      NormalBlock other = generate(keys, counter, kSecond);
      above = top.draw(other, keys, counter, kSecond);
    }
    const double quotient = factor * (above / bottom.draw(block, keys, counter, 0));
    if (top.shape >= 1 && bottom.shape >= 1) return quotient;
    const Block exponents = generate(keys, counter, kExponents);
    return quotient * exp(bottom.less(exponents, 0) - top.less(exponents, 1));
  }
};

struct Beta {
  static constexpr bool kNormal = true;
  GammaQuotient quotient;  // of the second variate by the first

  DLBRIDGE_ND_HD static Beta of(const double (&p)[kParameters]) noexcept {
    // Where both are next to nothing, their quotient alone counts.
    const double scale = p[0] < 1e-200 && p[1] < 1e-200 ? 0x1p300 : 1;
    const StandardGamma a = StandardGamma::of(scale * p[0]), b = StandardGamma::of(scale * p[1]);
    return {{b, a, b.d / a.d}};
  }
  DLBRIDGE_ND_HD double draw(const NormalBlock& block, const Keys& keys, std::uint64_t counter) const noexcept {
    return 1 / (1 + quotient.draw(block, keys, counter));
  }
};

// Fisher's: two chi-squared variates by their degrees of freedom.
struct FisherF {
  static constexpr bool kNormal = true;
  GammaQuotient quotient;

  DLBRIDGE_ND_HD static FisherF of(const double (&p)[kParameters]) noexcept {
    const StandardGamma top = StandardGamma::of(p[0] / 2), bottom = StandardGamma::of(p[1] / 2);
    return {{top, bottom, (top.d / p[0]) / (bottom.d / p[1])}};
  }
  DLBRIDGE_ND_HD double draw(const NormalBlock& block, const Keys& keys, std::uint64_t counter) const noexcept {
    return quotient.draw(block, keys, counter);
  }
};

// A normal number by the root of a chi-squared variate, which the block's other number makes.
struct StudentT {
  static constexpr bool kNormal = true;
  StandardGamma half;
  double factor;

  DLBRIDGE_ND_HD static StudentT of(const double (&p)[kParameters]) noexcept {
    const StandardGamma half = StandardGamma::of(p[0] / 2);
    return {half, sqrt(p[0] / half.d)};
  }
  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter) const noexcept {
    const double v = half.draw(block, keys, counter, 0), x = factor * block.y / sqrt(v);
    return half.shape < 1 ? x * exp(0.5 * half.less(generate(keys, counter, kExponents), 0)) : x;
  }
};

}  // namespace dlbridge::nd::philox
