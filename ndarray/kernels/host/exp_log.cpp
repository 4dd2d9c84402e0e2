// exp and log reduce their argument with the binary exponent, and evaluate a polynomial that goes through the function
// at the Chebyshev nodes of the interval that is left. What is added last is a sum whose rounding error is kept. pow is
// exp of a logarithm in two parts, which is that of one of 128 numbers, from a table, and a short series; of float32 it
// is computed in double precision, without the table.
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
    const bool none = !kPlain && x < Form::kLeast;
    if constexpr (!kPlain) {
      x = none ? T(0) : x;  // the product below would take long for a result of 0
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
    return none ? T(0) : value * power_of_two<T>(whole >> 1) * power_of_two<T>(whole - (whole >> 1));
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

// --- pow -------------------------------------------------------------------------------------------------------------

// |x| = 2^k z, with z in one of these intervals, equally many of its numbers in each. In the middle of one lies 1, so
// that what is near 1 has a logarithm without a rounding error.
constexpr int kIntervals = 128;
constexpr int kIndexShift = Format<double>::kMantissa - std::bit_width(static_cast<unsigned>(kIntervals - 1));
constexpr std::uint64_t kIntervalStep = std::uint64_t{1} << kIndexShift;
constexpr std::uint64_t kFirst = bits_of(1.0) - (75 * kIntervalStep + kIntervalStep / 2);

// Of each: a number near 1 / z of so few digits that its product with z, less 1, is exact; and minus the logarithm of
// that number in two parts, of which the first is a multiple of 2^-42, as Format<double>::kShortLn2 is.
struct Logarithms {
  double inverse[kIntervals], high[kIntervals], low[kIntervals];
};
__extension__ using Wide = __float128;
constexpr Wide wide_log(double x) noexcept {
  const Wide s = (Wide(x) - 1) / (Wide(x) + 1);
  Wide power = s, sum = 0;
  for (int k = 1; k < 60; k += 2, power *= s * s) sum += power / k;
  return 2 * sum;
}
constexpr std::int64_t nearest(double x) noexcept { return static_cast<std::int64_t>(x + (x < 0 ? -0.5 : 0.5)); }
constexpr Logarithms make_logarithms() noexcept {
  constexpr double kGrid = 0x1p42;
  Logarithms out{};
  for (std::uint64_t i = 0; i < kIntervals; ++i) {
    const auto begin = std::bit_cast<double>(kFirst + i * kIntervalStep);
    const auto end = std::bit_cast<double>(kFirst + (i + 1) * kIntervalStep);
    const double scale = begin + end < 2 ? 128 : 256;
    out.inverse[i] = static_cast<double>(nearest(2 * scale / (begin + end))) / scale;
    const Wide log = -wide_log(out.inverse[i]);
    out.high[i] = static_cast<double>(nearest(static_cast<double>(log * Wide(kGrid)))) / kGrid;
    out.low[i] = static_cast<double>(log - Wide(out.high[i]));
  }
  return out;
}
constexpr Logarithms kLogarithms = make_logarithms();

// What the bits of |x| are made of.
struct Parts {
  std::uint64_t interval;
  double exponent;
  double r;  // z times the inverse, less 1: at most 0.0059
};
inline Parts parts_of(std::uint64_t magnitude) noexcept {
  constexpr std::uint64_t kOne = std::uint64_t{1} << Format<double>::kMantissa;
  constexpr double kWhole = 0x1p52;
  const std::uint64_t beyond = magnitude - kFirst, interval = (beyond >> kIndexShift) & (kIntervals - 1);
  const auto z = std::bit_cast<double>(magnitude - (beyond & ~(kOne - 1)));
  const std::uint64_t biased = (beyond + 1024 * kOne) >> Format<double>::kMantissa;
  return {interval, std::bit_cast<double>(biased | bits_of(kWhole)) - (kWhole + 1024),
          std::fma(z, kLogarithms.inverse[interval], -1.0)};
}

// value(): `product` becomes y log(|x|), or infinity where value() does not hold: where it is not below kWithin, a
// function of C is asked. Right to 0.6 units of the last place.
template <class T>
struct Pow;
template <>
struct Pow<double> {
  using Form = Format<double>;
  static constexpr double kWithin = Form::kPlain;
  // (log(1 + r) - r + r^2 / 2) / r^3; (exp(r) - 1 - r - r^2 / 2) / r^3.
  static constexpr double kLog[] = {0x1.5555555555555p-2, -0.25,  0x1.999999999999ap-3, -0x1.5555555555555p-3,
                                    0x1.2492492492492p-3, -0.125, 0x1.c71c71c71c71cp-4, -0x1.999999999999ap-4};
  static constexpr double kExp[] = {0x1.5555555555556p-3,  0x1.5555555555555p-5,  0x1.11111111109adp-7,
                                    0x1.6c16c16c167dep-10, 0x1.a01a01a7c8d47p-13, 0x1.a01a01a47db6fp-16,
                                    0x1.71de0d9c145d0p-19, 0x1.27e4e1ea0f53ap-22, 0x1.af38d53857513p-26,
                                    0x1.1f66f85dfa20ap-29};

  static double value(double x, double y, double& product) noexcept {
    const std::uint64_t magnitude = bits_of(x) & (~std::uint64_t{0} >> 1);
    const auto [interval, exponent, r] = parts_of(magnitude);
    // The logarithm: high + low.
    const double table = std::fma(exponent, Form::kShortLn2, kLogarithms.high[interval]);  // exact
    const double first = table + r;
    const double half = 0.5 * r, square = r * half, second = first - square;
    const double lost = ((table - first) + r) + ((first - second) - square) - std::fma(half, r, -square);
    const double rest = std::fma(exponent, Form::kShortRest, kLogarithms.low[interval]) + lost;
    const double small = std::fma(r * r * r, polynomial(kLog, r), rest);
    const double high = second + small, low = (second - high) + small;
    product = y * high;
    const double product_low = std::fma(y, high, -product) + y * low;
    // exp of the product: 2^n (1 + a + b + …).
    constexpr double kRounder = 0x1.8p52;
    const double rounded = std::fma(product, Form::kLog2E, kRounder), n = rounded - kRounder;
    const double near = std::fma(-n, Form::kShortLn2, product);  // exact
    const double far = std::fma(-n, Form::kShortRest, product_low);
    const double a = near + far, b = (near - a) + far, sum = 1 + a, aa = a * a;
    const double value = sum + (std::fma(aa, 0.5, (1 - sum) + a) + std::fma(aa * a, polynomial(kExp, a), b * sum));
    const auto power = std::bit_cast<double>(bits_of(value) + (bits_of(rounded) << Form::kMantissa));
    product = holds(x, y,
                    magnitude - bits_of(std::numeric_limits<double>::min()) <
                        bits_of(std::numeric_limits<double>::infinity()) - bits_of(std::numeric_limits<double>::min()))
                  ? product
                  : std::numeric_limits<double>::infinity();
    return with_sign(x, y, power);
  }

  // A negative number has whole powers alone; of odd ones it keeps its sign.
  template <class T>
  static bool holds(T x, T y, bool normal) noexcept {
    return static_cast<bool>(normal & ((x > T(0)) | (std::nearbyint(y) == y)));
  }
  template <class T, class V>
  static V with_sign(T x, T y, V power) noexcept {
    const T half = T(0.5) * y;
    return static_cast<bool>((x < T(0)) & (std::nearbyint(half) != half)) ? -power : power;
  }
};
template <>
struct Pow<float> {
  using Form = Format<double>;
  static constexpr float kWithin = 87;
  // (2 atanh(s) / s - 2) / s^2 in s^2; (exp(r) - 1 - r) / r^2.
  static constexpr double kLog[] = {0x1.5555555555558p-1, 0x1.99999999952e2p-2, 0x1.2492492df148dp-2,
                                    0x1.c71c62e5800a1p-3, 0x1.7462b4ab2ef6bp-3};
  static constexpr double kExp[] = {0x1.0000000b9847ep-1, 0x1.5555555a7c16bp-3,  0x1.5554e8d9c7d96p-5,
                                    0x1.1110e0de7be2bp-7, 0x1.6d4362097d81ap-10, 0x1.a125285dbcbf1p-13};

  static float value(float x, float y, float& product) noexcept {
    const std::uint32_t magnitude = bits_of(x) & (~std::uint32_t{0} >> 1);
    // log(|x|) = exponent log(2) + 2 atanh(s). A division takes less time than numbers from a table.
    constexpr std::uint64_t kRoot = bits_of(0.70710678118654752440), kFraction = bits_of(1.0) - kRoot;
    const std::uint64_t bits = bits_of(static_cast<double>(std::bit_cast<float>(magnitude))) + kFraction;
    const double exponent = Log<double>::unbiased(bits >> Form::kMantissa);
    const auto z = std::bit_cast<double>((bits & ((std::uint64_t{1} << Form::kMantissa) - 1)) + kRoot);
    const double s = (z - 1) / (z + 1);
    const double whole = y * std::fma(exponent, Form::kLn2, std::fma(s * s * s, polynomial(kLog, s * s), 2 * s));
    constexpr double kRounder = 0x1.8p52;
    const double rounded = std::fma(whole, Form::kLog2E, kRounder);
    const double a = std::fma(-(rounded - kRounder), Form::kLn2, whole);
    const double value = 1 + std::fma(a * a, polynomial(kExp, a), a);
    const auto power = std::bit_cast<double>(bits_of(value) + (bits_of(rounded) << Form::kMantissa));
    const bool normal = magnitude - bits_of(std::numeric_limits<float>::min()) <
                        bits_of(std::numeric_limits<float>::infinity()) - bits_of(std::numeric_limits<float>::min());
    product = Pow<double>::holds(x, y, normal) ? static_cast<float>(whole) : std::numeric_limits<float>::infinity();
    return Pow<double>::with_sign(x, y, static_cast<float>(power));
  }
};

template <class T>
void map_power(const T* in, const T* second, T* out, std::int64_t count) noexcept {
  constexpr auto kBeyond = [](T product) { return !(std::fabs(product) < Pow<T>::kWithin); };
  for_each_block(count, [&](std::int64_t i, auto block) {
    constexpr std::int64_t size = block;
    T values[size], products[size];
#if !defined(__clang__)
#pragma GCC ivdep
#endif
    for (std::int64_t j = 0; j < size; ++j) values[j] = Pow<T>::value(in[i + j], second[i + j], products[j]);
    if (std::any_of(products, products + size, kBeyond)) [[unlikely]]
      for (std::int64_t j = 0; j < size; ++j)
        if (kBeyond(products[j])) values[j] = std::pow(in[i + j], second[i + j]);
    std::copy_n(values, size, out + i);
  });
}

// --- by vectors ------------------------------------------------------------------------------------------------------

template <class F, bool kPlain, std::int64_t size, class T>
void map_values(const T* in, T* out) noexcept {
#if !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::int64_t j = 0; j < size; ++j) out[j] = F::template value<kPlain>(in[j]);
}
template <class F, class T>
void map_function(const T* in, T* out, std::int64_t count) noexcept {
  for_each_block(count, [&](std::int64_t i, auto block) {
    constexpr std::int64_t size = block;
    BitsOf<T> farthest = 0;
    for (std::int64_t j = 0; j < size; ++j) farthest = std::max(farthest, F::distance(in[i + j]));
    if (farthest <= F::kNear) map_values<F, true, size>(in + i, out + i);
    else map_values<F, false, size>(in + i, out + i);
  });
}

template <class F, class T>
void map_any(const T* in, const T* second, T* out, std::int64_t count) noexcept {
  if constexpr (std::is_same_v<F, Pow<T>>) map_power(in, second, out, count);
  else map_function<F>(in, out, count);
}

template <class F, class T>
[[gnu::flatten, gnu::target("avx512f,avx512dq,avx512vl,avx2,fma")]] void run_on_64_bytes(void*, const T* in,
                                                                                         const T* second, T* out,
                                                                                         std::int64_t count) noexcept {
  map_any<F>(in, second, out, count);
}
template <class F, class T>
[[gnu::flatten, gnu::target("avx2,fma")]] void run_on_32_bytes(void*, const T* in, const T* second, T* out,
                                                               std::int64_t count) noexcept {
  map_any<F>(in, second, out, count);
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
  if (op == Op::kPower) return best_of<Pow<T>, T>();
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
