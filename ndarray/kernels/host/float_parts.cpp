#include "ndarray/kernels/host/float_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <class T>
struct Form;
template <>
struct Form<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23, kHalf = 126;  // kHalf: the exponent that 0.5 is stored with
  static constexpr int kLeast = -160, kMost = 130;   // exponents of mantissas: of nothing but 0, of infinity
};
template <>
struct Form<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52, kHalf = 1022;
  static constexpr int kLeast = -1080, kMost = 1030;
};

template <class T>
T power_of_two(int exponent) noexcept {
  using F = Form<T>;
  return std::bit_cast<T>(static_cast<typename F::Bits>(exponent + F::kHalf + 1) << F::kMantissa);
}

template <class T>
struct Split {
  T mantissa;
  int exponent;
};
template <class T>
Split<T> split(T x) noexcept {
  using F = Form<T>;
  using Bits = typename F::Bits;
  constexpr Bits kOnes = (Bits{1} << (8 * sizeof(T) - 1 - F::kMantissa)) - 1;
  const auto stored = [](T value) { return static_cast<int>(std::bit_cast<Bits>(value) >> F::kMantissa & kOnes); };
  const bool is_small = stored(x) == 0;  // a subnormal number has an exponent when it is multiplied
  const T raised = is_small ? x * power_of_two<T>(F::kMantissa + 1) : x;
  const Bits mantissa = (std::bit_cast<Bits>(raised) & ~(kOnes << F::kMantissa)) | Bits{F::kHalf} << F::kMantissa;
  const int exponent = stored(raised) - F::kHalf - (is_small ? F::kMantissa + 1 : 0);
  const bool is_plain = x != 0 && std::abs(x) <= std::numeric_limits<T>::max();
  return {is_plain ? std::bit_cast<T>(mantissa) : x, is_plain ? exponent : 0};
}

template <class T>
DLBRIDGE_ND_CLONES void split_exponents_of(const T* x, std::int64_t n, T* mantissas, std::int32_t* exponents) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const Split<T> parts = split(x[i]);
    mantissas[i] = parts.mantissa;
    exponents[i] = parts.exponent;
  }
}

template <class T, class Exponent>
DLBRIDGE_ND_CLONES void scale_by_powers_of(const T* x, const Exponent* exponents, std::int64_t n, T* out) noexcept {
  using F = Form<T>;
  constexpr int kEnough = 1 << 12;  // from the least number past the largest
  for (std::int64_t i = 0; i < n; ++i) {
    const Split<T> parts = split(x[i]);
    // By halves, for 2^exponent alone may be no number; the first product is exact.
    const Exponent by = std::clamp<Exponent>(exponents[i], -kEnough, kEnough);
    const int exponent = std::clamp(parts.exponent + static_cast<int>(by), F::kLeast, F::kMost);
    out[i] = parts.mantissa * power_of_two<T>(exponent / 2) * power_of_two<T>(exponent - exponent / 2);
  }
}

template <class T>
DLBRIDGE_ND_CLONES void split_wholes_of(const T* x, std::int64_t n, T* fractions, T* wholes) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = x[i], whole = std::trunc(value);
    const T rest = std::abs(value) == std::numeric_limits<T>::infinity() ? T(0) : value - whole;
    fractions[i] = std::copysign(rest, value);
    wholes[i] = whole;
  }
}

template <class T>
DLBRIDGE_ND_CLONES void find_spacings_of(const T* x, std::int64_t n, T* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = x[i] + T(0);  // the zeros have one spacing
    const T next = std::bit_cast<T>(std::bit_cast<typename Form<T>::Bits>(value) + 1);
    out[i] = (std::abs(value) <= std::numeric_limits<T>::max() ? next : value) - value;
  }
}

template <class T>
DLBRIDGE_ND_CLONES void replace_specials_of(T* x, std::int64_t n, T nan, T high, T low) noexcept {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = x[i], bounded = value == kInfinity ? high : value == -kInfinity ? low : value;
    x[i] = value != value ? nan : bounded;
  }
}

}  // namespace

template <class T>
void split_exponents(const T* x, std::int64_t n, T* mantissas, std::int32_t* exponents) noexcept {
  split_exponents_of(x, n, mantissas, exponents);
}
template <class T, class Exponent>
void scale_by_powers(const T* x, const Exponent* exponents, std::int64_t n, T* out) noexcept {
  scale_by_powers_of(x, exponents, n, out);
}
template <class T>
void split_wholes(const T* x, std::int64_t n, T* fractions, T* wholes) noexcept {
  split_wholes_of(x, n, fractions, wholes);
}
template <class T>
void find_spacings(const T* x, std::int64_t n, T* out) noexcept {
  find_spacings_of(x, n, out);
}
template <class T>
void replace_specials(T* x, std::int64_t n, T nan, T high, T low) noexcept {
  replace_specials_of(x, n, nan, high, low);
}

#define DLBRIDGE_ND_FLOAT_PARTS(T)                                                                          \
  template void split_exponents<T>(const T*, std::int64_t, T*, std::int32_t*) noexcept;                     \
  template void scale_by_powers<T, std::int32_t>(const T*, const std::int32_t*, std::int64_t, T*) noexcept; \
  template void scale_by_powers<T, std::int64_t>(const T*, const std::int64_t*, std::int64_t, T*) noexcept; \
  template void split_wholes<T>(const T*, std::int64_t, T*, T*) noexcept;                                   \
  template void find_spacings<T>(const T*, std::int64_t, T*) noexcept;                                      \
  template void replace_specials<T>(T*, std::int64_t, T, T, T) noexcept;
DLBRIDGE_ND_FLOAT_PARTS(float)
DLBRIDGE_ND_FLOAT_PARTS(double)
#undef DLBRIDGE_ND_FLOAT_PARTS

}  // namespace dlbridge::nd::host_kernels
