// Variates of float64 that are rounded to the output's dtype: formulas of a uniform number, laws by rejection, of which
// the gamma distribution is one.
#pragma once

#include "ndarray/kernels/random/philox.h"

namespace dlbridge::nd::philox {

// A uniform number in (0, 1), both logarithms of which are finite.
DLBRIDGE_ND_HD inline double inner_unit(const Block& block, int place) noexcept {
  const double u = unit<double>(block, place);
  return u < 0x1p-54 ? 0x1p-54 : u;  // the largest one is 1 - 2^-53
}

// The inverse of the distribution's function, of location 0 and scale 1. Out of line on the device, as the variates
// below: a thread makes up to 32 of them, and each copy would hold the logarithms of all.
DLBRIDGE_ND_NOINLINE DLBRIDGE_ND_HD inline double quantile(Distribution distribution, double u) noexcept {
  switch (distribution) {
    case Distribution::kLaplace: return u < 0.5 ? log(2 * u) : -log(2 * (1 - u));
    case Distribution::kLogistic: return log(u / (1 - u));
    case Distribution::kGumbel: return -log(-log(u));
    case Distribution::kRayleigh: return sqrt(-2 * log(u));
    default: return tan((u - 0.5) * 3.14159265358979323846);
  }
}

template <class T>
struct Quantile {
  using value_type = T;
  static constexpr int kCount = elements_per_counter(Distribution::kLaplace, dtype_of_native<T>::value);
  Distribution distribution;
  double loc, scale;

  static Quantile make(const RandomArgs& args) noexcept { return {args.distribution, args.a, args.b}; }
  DLBRIDGE_ND_HD void operator()(const Block& block, const Keys&, std::uint64_t, T* out) const noexcept {
    for (int i = 0; i < kCount; ++i) out[i] = cast<T>(loc + scale * quantile(distribution, inner_unit(block, i)));
  }
};

// One variate a counter, by a law whose parameter is the number a or an element of an array. A law holds what it makes
// of its parameter: `of` makes the law of another one, and a variate is `draw(block, keys, counter, high)`, where
// `block` is that of the counter with the high half `high`; what is rejected takes those after it.
template <class T, class Law>
struct Variates {
  using value_type = T;
  static constexpr int kCount = 1;
  static constexpr bool kNormal = takes_normals<Law>();
  Law law;
  const double* parameters;
  std::uint64_t offset;
  std::int64_t n;

  static Variates make(const RandomArgs& args) noexcept {
    return {Law::make(args).of(args.a), args.shapes, args.offset, args.n};
  }
  template <class Start>
  DLBRIDGE_ND_HD void operator()(const Start& block, const Keys& keys, std::uint64_t counter, T* out) const noexcept {
    const auto element = static_cast<std::int64_t>(counter - offset);
    if (element < n) *out = cast<T>(variate(element, block, keys, counter));
  }

 private:
  template <class Start>
  DLBRIDGE_ND_NOINLINE DLBRIDGE_ND_HD double variate(std::int64_t element, const Start& block, const Keys& keys,
                                                     std::uint64_t counter) const noexcept {
    if (parameters == nullptr) return law.draw(block, keys, counter, 0);
    return law.of(parameters[element]).draw(block, keys, counter, 0);
  }
};

// By Marsaglia and Tsang (2000), one block a try: its normal number, of whose angle the lower 32 bits, which move it by
// 2^-32, decide whether it is accepted. Shapes below 1 are those of one more, times
// u ** (1 / shape), which underflows where the shape is small: its logarithm does not.
struct Gamma {
  static constexpr bool kNormal = true;
  static constexpr std::uint64_t kExponent = ~std::uint64_t{0};  // no try has this high half of the counter
  bool logarithm;
  double scale, shape = 1, d = 0, c = 0;

  static Gamma make(const RandomArgs& args) noexcept { return {args.distribution == Distribution::kLogGamma, args.b}; }
  DLBRIDGE_ND_HD Gamma of(double alpha) const noexcept {
    const double most = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
    return {logarithm, scale, alpha, most, 1 / sqrt(9 * most)};
  }
  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter,
                             std::uint64_t high) const noexcept {
    for (;;) {
      const double x = block.x * 1.41421356237309504880;
      const double root = 1 + x * c, v = root * root * root;
      const double u = (block.word[2] + 0.5) * 0x1p-32, square = x * x;
      // The first test holds for all but 2 % of the numbers, and needs no logarithm.
      if (v > 0 && (u < 1 - 0.0331 * square * square || log(u) < 0.5 * square + d * (1 - v + log(v)))) {
        const bool small = shape < 1;
        const double less = small ? minus_log(open_unit(word64(generate(keys, counter, kExponent), 0))) / shape : 0;
        if (logarithm) return log(d * v) - less;
        return small ? scale * (d * v) * exp(-less) : scale * (d * v);
      }
      block = generate(keys, counter, ++high);
    }
  }
};

// By Best and Fisher (1979), one block a try: the direction of its pair of normal numbers, whose second one says on
// which side the angle lies, and the number of their radius, which decides. Where the concentration is so large that
// the formula cancels, the normal distribution that it has become.
struct VonMises {
  static constexpr bool kNormal = true;
  static constexpr double kLeast = 1e-8, kSharp = 1e6;
  double mu, kappa = 0, s = 0;

  static VonMises make(const RandomArgs& args) noexcept { return {args.b}; }
  DLBRIDGE_ND_HD VonMises of(double concentration) const noexcept {
    const double k = concentration < kLeast ? kLeast : concentration;
    const double r = 1 + sqrt(1 + 4 * k * k), rho = (r - sqrt(2 * r)) / (2 * k);
    return {mu, k, k < 1e-5 ? 1 / k + k : (1 + rho * rho) / (2 * (rho > 0 ? rho : 1))};
  }
  DLBRIDGE_ND_HD double draw(NormalBlock block, const Keys& keys, std::uint64_t counter,
                             std::uint64_t high) const noexcept {
    for (;; block = generate(keys, counter, ++high)) {
      if (kappa > kSharp) return around(sqrt(2 / kappa) * block.x);
      const double minus_log_v = block.x * block.x + block.y * block.y;
      const double r = sqrt(minus_log_v), below = product_plus(s, r, block.x);
      const double w = below > 0 ? product_plus(s, block.x, r) / below : 1, distance = kappa * (s - w);
      const double y = distance > 1e-300 ? distance : 1e-300;
      if (y * (2 - y) < open_unit(block.word[0], block.word[1]) && log(y) + minus_log_v + 1 < y) continue;
      const double angle = acos(w > 1 ? 1 : w < -1 ? -1 : w);
      return around(block.y < 0 ? -angle : angle);
    }
  }

 private:
  // In [-pi, pi]; most sums lie in the first turn.
  DLBRIDGE_ND_HD double around(double angle) const noexcept {
    constexpr double kPi = 3.14159265358979323846, kTurn = 2 * kPi;
    double turned = mu + angle + kPi;
    if (!(turned >= 0 && turned < kTurn)) {
      turned = fmod(turned, kTurn);
      if (turned < 0) turned += kTurn;
    }
    return turned - kPi;
  }
};

template <class T>
using GammaVariates = Variates<T, Gamma>;
template <class T>
using VonMisesVariates = Variates<T, VonMises>;

}  // namespace dlbridge::nd::philox
