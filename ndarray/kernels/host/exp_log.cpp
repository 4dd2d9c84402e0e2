// Both reduce their argument with the binary exponent, and evaluate a polynomial that goes through the function at the
// Chebyshev nodes of the interval that is left. What is added last is a sum whose rounding error is kept.
#include "ndarray/kernels/host/exp_log.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

namespace dlbridge::nd::host_kernels {
#if defined(__x86_64__) && defined(__GNUC__)
namespace {

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = std::uint32_t;
  using Integer = std::int32_t;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kLn2 = 0x1.62e43p-1F, kLn2Rest = -0x1.05c61p-29F;        // to be multiplied by fma()
  static constexpr float kShortLn2 = 0x1.62e4p-1F, kShortRest = 0x1.7f7d1cp-20F;  // a product with an exponent is exact
  static constexpr float kLog2E = 0x1.715476p0F;
  static constexpr float kPlain = 86, kLeast = -104.5F, kMost = 89;  // of exp: of normal results; none at all; infinite
  // (exp(r) - 1 - r) / r^2, |r| <= log(2) / 2.
  static constexpr float kExp[] = {0x1p-1F,       0x1.555556p-3F,  0x1.5554eap-5F,
                                   0x1.1110ep-7F, 0x1.6d4316p-10F, 0x1.a124e4p-13F};
  // (log(1 + u) - u + u^2 / 2) / u^3, sqrt(1/2) <= 1 + u <= sqrt(2).
  static constexpr float kLog[] = {0x1.555554p-2F,  -0x1.fffffcp-3F, 0x1.999d5ap-3F,  -0x1.555b4ap-3F, 0x1.23d21ap-3F,
                                   -0x1.fcf4c6p-4F, 0x1.dea282p-4F,  -0x1.d635bcp-4F, 0x1.1d8ea6p-4F};
};
template <>
struct Format<double> {
  using Bits = std::uint64_t;
  using Integer = std::int64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLn2Rest = 0x1.abc9e3b39803fp-56;
  static constexpr double kShortLn2 = 0x1.62e42fefa38p-1, kShortRest = 0x1.ef35793c7673p-45;
  static constexpr double kLog2E = 0x1.71547652b82fep0;
  static constexpr double kPlain = 708, kLeast = -746, kMost = 710;
  static constexpr double kExp[] = {0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553d68p-5,
                                    0x1.11111111109b5p-7,  0x1.6c16c17889ef1p-10, 0x1.a01a01a7c2efep-13,
                                    0x1.a019b9149a41cp-16, 0x1.71de0db2f6b19p-19, 0x1.28917c89a43a7p-22,
                                    0x1.af389ecfc4b9cp-26};
  // (2 atanh(s) / s - 2) / s^2 in s^2, of s = u / (2 + u).
  static constexpr double kLog[] = {0x1.5555555555558p-1, 0x1.99999999952e2p-2, 0x1.2492492df148dp-2,
                                    0x1.c71c62e5800a1p-3, 0x1.7462b4ab2ef6bp-3, 0x1.39fe606542ddep-3,
                                    0x1.2b584aae78a57p-3};
};

template <class T>
using BitsOf = typename Format<T>::Bits;
template <class T>
constexpr BitsOf<T> bits_of(T x) noexcept {
  return std::bit_cast<BitsOf<T>>(x);
}
template <class T>
constexpr T power_of_two(typename Format<T>::Integer exponent) noexcept {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(exponent + Format<T>::kBias) << Format<T>::kMantissa);
}

// The polynomial of `count` coefficients from `first` on, by halves, so that no long chain of additions has to be
// waited for. powers[k] is x to the 2^k.
template <int first, int count, class T, std::size_t n>
T polynomial_part(const T (&c)[n], const T* powers) noexcept {
  if constexpr (count == 1) {
    return c[first];
  } else {
    constexpr int level = std::bit_width(static_cast<unsigned>(count - 1)) - 1;
    constexpr int half = 1 << level;
    return std::fma(polynomial_part<first + half, count - half>(c, powers), powers[level],
                    polynomial_part<first, half>(c, powers));
  }
}
template <class T, std::size_t n>
T polynomial(const T (&c)[n], T x) noexcept {
  const T x2 = x * x, x4 = x2 * x2;
  const T powers[] = {x, x2, x4, x4 * x4};
  return polynomial_part<0, n>(c, powers);
}

// distance() <= kNear: the argument has an ordinary result, for which kPlain does; both ways give it the same bits.
template <class T>
struct Exp {
  using Form = Format<T>;
  static constexpr BitsOf<T> kNear = bits_of(Form::kPlain);
  static BitsOf<T> distance(T x) noexcept { return bits_of(x) & (~BitsOf<T>{0} >> 1); }

  template <bool kPlain>
  static T value(T x) noexcept {
    if constexpr (!kPlain) {
      x = x < Form::kLeast ? Form::kLeast : x;
      x = x > Form::kMost ? Form::kMost : x;
    }
    constexpr T kRounder = T(1.5) * power_of_two<T>(Form::kMantissa);  // a sum with it is a whole number
    const T rounded = std::fma(x, Form::kLog2E, kRounder);
    const T exponent = rounded - kRounder;
    const T r = std::fma(-exponent, Form::kLn2Rest, std::fma(-exponent, Form::kLn2, x));
    const T sum = T(1) + r;
    const T value = sum + std::fma(r * r, polynomial(Form::kExp, r), (T(1) - sum) + r);
    if constexpr (kPlain) return std::bit_cast<T>(bits_of(value) + (bits_of(rounded) << Form::kMantissa));
    // By halves: 2^exponent alone may be no number.
    const auto whole = static_cast<typename Form::Integer>(bits_of(rounded) - bits_of(kRounder));
    return value * power_of_two<T>(whole >> 1) * power_of_two<T>(whole - (whole >> 1));
  }
};

template <class T>
struct Log {
  using Form = Format<T>;
  using Bits = BitsOf<T>;
  static constexpr Bits kNear = bits_of(std::numeric_limits<T>::max()) - bits_of(std::numeric_limits<T>::min());
  static Bits distance(T x) noexcept { return bits_of(x) - bits_of(std::numeric_limits<T>::min()); }

  // log(1 + u) - u.
  static T rest(T u) noexcept {
    if constexpr (sizeof(T) == 4) {
      return u * u * std::fma(u, polynomial(Form::kLog, u), T(-0.5));
    } else {
      const T s = u / (T(2) + u), half = T(0.5) * u * u;
      return std::fma(s, half + s * s * polynomial(Form::kLog, s * s), -half);
    }
  }
  // A biased exponent: the conversion of 64-bit integers is an instruction of newer machines only.
  static T unbiased(Bits exponent) noexcept {
    constexpr T kWhole = power_of_two<T>(Form::kMantissa);
    return std::bit_cast<T>(bits_of(kWhole) | exponent) - (kWhole + T(Form::kBias));
  }

  template <bool kPlain>
  static T value(T x) noexcept {
    constexpr T kScale = power_of_two<T>(Form::kMantissa);
    const bool small = !kPlain && x < std::numeric_limits<T>::min();
    const T normal = small ? x * kScale : x;
    constexpr Bits kRoot = bits_of(static_cast<T>(0.70710678118654752440)), kFraction = bits_of(T(1)) - kRoot;
    const Bits bits = bits_of(normal) + kFraction;
    const T exponent = unbiased(bits >> Form::kMantissa) - (small ? T(Form::kMantissa) : T(0));
    const T u = std::bit_cast<T>((bits & ((Bits{1} << Form::kMantissa) - 1)) + kRoot) - T(1);
    const T large = exponent * Form::kShortLn2, sum = large + u;
    const T value = sum + (std::fma(exponent, Form::kShortRest, rest(u)) + ((large - sum) + u));
    if constexpr (kPlain) return value;
    constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNaN = std::numeric_limits<T>::quiet_NaN();
    const T outside = x == T(0) ? -kInfinity : x == kInfinity ? x : kNaN;
    return x > T(0) && x < kInfinity ? value : outside;
  }
};

template <class F, bool kPlain, class T>
void map_values(const T* in, T* out) noexcept {
#if !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::int64_t j = 0; j < kBlock; ++j) out[j] = F::template value<kPlain>(in[j]);
}
template <class F, class T>
void map_function(const T* in, T* out, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; i += kBlock) {
    BitsOf<T> farthest = 0;
    for (std::int64_t j = 0; j < kBlock; ++j) farthest = std::max(farthest, F::distance(in[i + j]));
    if (farthest <= F::kNear) map_values<F, true>(in + i, out + i);
    else map_values<F, false>(in + i, out + i);
  }
}

template <class F, class T>
[[gnu::flatten, gnu::target("avx512f,avx512dq,avx512vl,avx2,fma")]] void run_on_64_bytes(void*, const T* in,
                                                                                         const T* /*second*/, T* out,
                                                                                         std::int64_t count) noexcept {
  map_function<F>(in, out, count);
}
template <class F, class T>
[[gnu::flatten, gnu::target("avx2,fma")]] void run_on_32_bytes(void*, const T* in, const T* /*second*/, T* out,
                                                               std::int64_t count) noexcept {
  map_function<F>(in, out, count);
}

template <class F, class T>
VectorFunction<T> best_of() noexcept {
  const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool wide = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return {!fma ? nullptr : wide ? &run_on_64_bytes<F, T> : &run_on_32_bytes<F, T>, nullptr};
}

}  // namespace

template <class T>
VectorFunction<T> exp_log_function(Op op) noexcept {
  if (op == Op::kExp) return best_of<Exp<T>, T>();
  if (op == Op::kLog) return best_of<Log<T>, T>();
  return {};
}
#else
template <class T>
VectorFunction<T> exp_log_function(Op) noexcept {
  return {};
}
#endif
template VectorFunction<float> exp_log_function<float>(Op op) noexcept;
template VectorFunction<double> exp_log_function<double>(Op op) noexcept;

}  // namespace dlbridge::nd::host_kernels
