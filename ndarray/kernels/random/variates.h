// Variates of float64 that are rounded to the output's dtype: formulas of a uniform number, and laws of one variate a
// counter, mostly by rejection.
#pragma once

#include "ndarray/kernels/random/philox.h"

namespace dlbridge::nd::philox {

inline constexpr double kRootTwo = 1.41421356237309504880;
inline constexpr double kLargestCount = 0x1p63 - 1024;  // the largest float64 that an int64 holds
// Where a variate takes other blocks than those that follow a rejection, the high half of their first counter.
inline constexpr std::uint64_t kSecond = std::uint64_t{1} << 32, kThird = kSecond << 1;

// A uniform number in (0, 1), both logarithms of which are finite.
DLBRIDGE_ND_HD inline double inner_unit(const Block& block, int place) noexcept {
  const double u = unit<double>(block, place);
  return u < 0x1p-54 ? 0x1p-54 : u;  // the largest one is 1 - 2^-53
}

// The value of a variate; counts that no int64 holds are its largest one, as NumPy's are.
template <class T>
DLBRIDGE_ND_HD inline T stored(double x) noexcept {
  if constexpr (std::is_same_v<T, std::int64_t>)
    return x < 0x1p63 ? static_cast<std::int64_t>(x) : std::numeric_limits<std::int64_t>::max();
  else return cast<T>(x);
}

// The numbers of a call, or instead of each an element of an array.
struct Parameters {
  double of_call[kParameters];
  const double* of_elements[kParameters];
  bool in_arrays;

  static Parameters make(const RandomArgs& args) noexcept {
    Parameters made{{args.a, args.b, args.c}, {}, false};
    for (int i = 0; i < kParameters; ++i) {
      made.of_elements[i] = args.arrays[i];
      made.in_arrays |= args.arrays[i] != nullptr;
    }
    return made;
  }
  DLBRIDGE_ND_HD void find(std::int64_t element, double (&p)[kParameters]) const noexcept {
    for (int i = 0; i < kParameters; ++i) p[i] = of_elements[i] != nullptr ? of_elements[i][element] : of_call[i];
  }
};

// What quantile() takes of the parameters.
DLBRIDGE_ND_HD inline void prepare(Distribution distribution, double (&p)[kParameters]) noexcept {
  if (distribution == Distribution::kGeometric) p[0] = log1p(-p[0]);
}

constexpr bool takes_logarithm(Distribution distribution) noexcept {
  return distribution == Distribution::kGumbel || distribution == Distribution::kRayleigh ||
         (distribution >= Distribution::kPareto && distribution != Distribution::kTriangular);
}

// The inverse of the distribution's function; `logarithm` is that of u, where it takes one.
template <Distribution kOf>
DLBRIDGE_ND_HD inline double quantile(const double (&p)[kParameters], double u, double logarithm) noexcept {
  if constexpr (kOf == Distribution::kLaplace) {
    return p[0] + p[1] * (u < 0.5 ? log(2 * u) : -log(2 * (1 - u)));
  } else if constexpr (kOf == Distribution::kLogistic) {
    return p[0] + p[1] * log(u / (1 - u));
  } else if constexpr (kOf == Distribution::kGumbel) {
    return p[0] + p[1] * -log(-logarithm);
  } else if constexpr (kOf == Distribution::kRayleigh) {
    return p[0] + p[1] * sqrt(-2 * logarithm);
  } else if constexpr (kOf == Distribution::kCauchy) {
    return p[0] + p[1] * tan((u - 0.5) * 3.14159265358979323846);
  } else if constexpr (kOf == Distribution::kPareto) {
    return expm1(-logarithm / p[0]);
  } else if constexpr (kOf == Distribution::kPower) {
    return exp(logarithm / p[0]);
  } else if constexpr (kOf == Distribution::kWeibull) {
    return exp(log(-logarithm) / p[0]);
  } else if constexpr (kOf == Distribution::kTriangular) {
    const double width = p[2] - p[0], rise = p[1] - p[0];
    const double rising = p[0] + sqrt(u * width * rise), falling = p[2] - sqrt((1 - u) * width * (p[2] - p[1]));
    return u * width <= rise ? rising : falling;
  } else {
    static_assert(kOf == Distribution::kGeometric);
    const double k = ceil(logarithm / p[0]);
    return k > 1 ? k : 1;
  }
}

// Calls f.operator()<distribution>(), of those by a formula.
template <class F>
DLBRIDGE_ND_HD inline auto visit_formula(Distribution distribution, F&& f) {
  switch (distribution) {
    case Distribution::kLaplace: return f.template operator()<Distribution::kLaplace>();
    case Distribution::kLogistic: return f.template operator()<Distribution::kLogistic>();
    case Distribution::kGumbel: return f.template operator()<Distribution::kGumbel>();
    case Distribution::kRayleigh: return f.template operator()<Distribution::kRayleigh>();
    case Distribution::kCauchy: return f.template operator()<Distribution::kCauchy>();
    case Distribution::kPareto: return f.template operator()<Distribution::kPareto>();
    case Distribution::kPower: return f.template operator()<Distribution::kPower>();
    case Distribution::kWeibull: return f.template operator()<Distribution::kWeibull>();
    case Distribution::kTriangular: return f.template operator()<Distribution::kTriangular>();
    default: return f.template operator()<Distribution::kGeometric>();
  }
}

// Out of line on the device, as the variates below: a thread makes up to 32 of them, and each copy would hold the
// logarithms of all.
DLBRIDGE_ND_NOINLINE DLBRIDGE_ND_HD inline double quantile(Distribution distribution, const double (&p)[kParameters],
                                                           double u) noexcept {
  return visit_formula(distribution,
                       [&]<Distribution kOf>() { return quantile<kOf>(p, u, takes_logarithm(kOf) ? log(u) : 0); });
}

template <class T>
struct Quantile {
  using value_type = T;
  static constexpr int kCount = elements_per_counter(Distribution::kLaplace, dtype_of_native<T>::value);
  Distribution distribution;
  Parameters parameters;
  std::uint64_t offset;
  std::int64_t n;

  static Quantile make(const RandomArgs& args) noexcept {
    Quantile made{args.distribution, Parameters::make(args), args.offset, args.n};
    if (!made.parameters.in_arrays) prepare(args.distribution, made.parameters.of_call);
    return made;
  }
  DLBRIDGE_ND_HD void operator()(const Block& block, const Keys&, std::uint64_t counter, T* out) const noexcept {
    for (int i = 0; i < kCount; ++i) {
      const double u = inner_unit(block, i);
      if (!parameters.in_arrays) {
        out[i] = stored<T>(quantile(distribution, parameters.of_call, u));
        continue;
      }
      const auto element = static_cast<std::int64_t>(counter - offset) * kCount + i;
      if (element >= n) return;
      double p[kParameters];
      parameters.find(element, p);
      prepare(distribution, p);
      out[i] = stored<T>(quantile(distribution, p, u));
    }
  }
};

// One variate a counter, by a law. A law holds what it makes of its parameters, Law::of(parameters); a variate is
// draw(block, keys, counter), where `block` is that of the counter, a NormalBlock where kNormal says so; what is
// rejected takes those of later high halves. It ends whatever the parameters are, since others may write to an array
// meanwhile.
template <class T, class Law>
struct Variates {
  using value_type = T;
  static constexpr int kCount = 1;
  static constexpr bool kNormal = takes_normals<Law>();
  Law law;  // of the call
  Parameters parameters;
  std::uint64_t offset;
  std::int64_t n;

  static Variates make(const RandomArgs& args) noexcept {
    const Parameters parameters = Parameters::make(args);
    return {Law::of(parameters.of_call), parameters, args.offset, args.n};
  }
  template <class Start>
  DLBRIDGE_ND_HD void operator()(const Start& block, const Keys& keys, std::uint64_t counter, T* out) const noexcept {
    const auto element = static_cast<std::int64_t>(counter - offset);
    if (element < n) *out = stored<T>(variate(element, block, keys, counter));
  }

 private:
  template <class Start>
  DLBRIDGE_ND_NOINLINE DLBRIDGE_ND_HD double variate(std::int64_t element, const Start& block, const Keys& keys,
                                                     std::uint64_t counter) const noexcept {
    if (!parameters.in_arrays) return law.draw(block, keys, counter);
    double p[kParameters];
    parameters.find(element, p);
    return Law::of(p).draw(block, keys, counter);
  }
};

}  // namespace dlbridge::nd::philox
