// Elementary functions of complex numbers. Branch cuts and special values are those of the library beneath: libm's on
// the host, Thrust's (a port of FreeBSD's) on the device, but for what those answer differently at infinity and NaN:
// that is here for both, as C99's annex G has it. What neither has follows NumPy's formulas.
#pragma once

#include "ndarray/kernels/functors/math.h"

#if defined(__CUDACC__)
#include <thrust/complex.h>
#endif

namespace dlbridge::nd::fn {

namespace detail {
#if defined(__CUDACC__)
namespace lib = ::thrust;
template <class T>
using lib_complex = ::thrust::complex<T>;
#else
namespace lib = ::std;
template <class T>
using lib_complex = ::std::complex<T>;
#endif
template <class T>
DLBRIDGE_ND_HD inline lib_complex<T> to_lib(complex<T> z) noexcept {
  return {z.real(), z.imag()};
}
template <class T>
DLBRIDGE_ND_HD inline complex<T> from_lib(lib_complex<T> z) noexcept {
  return {z.real(), z.imag()};
}
}  // namespace detail

#define DLBRIDGE_ND_COMPLEX_FUNCTION(name)                                 \
  template <class T>                                                       \
  DLBRIDGE_ND_HD inline complex<T> complex_##name(complex<T> z) noexcept { \
    return detail::from_lib<T>(detail::lib::name(detail::to_lib<T>(z)));   \
  }
DLBRIDGE_ND_COMPLEX_FUNCTION(sin)
DLBRIDGE_ND_COMPLEX_FUNCTION(cos)
DLBRIDGE_ND_COMPLEX_FUNCTION(asin)
DLBRIDGE_ND_COMPLEX_FUNCTION(acos)
DLBRIDGE_ND_COMPLEX_FUNCTION(atan)
DLBRIDGE_ND_COMPLEX_FUNCTION(sinh)
DLBRIDGE_ND_COMPLEX_FUNCTION(cosh)
DLBRIDGE_ND_COMPLEX_FUNCTION(asinh)
DLBRIDGE_ND_COMPLEX_FUNCTION(atanh)
#undef DLBRIDGE_ND_COMPLEX_FUNCTION

namespace detail {
template <class T>
DLBRIDGE_ND_HD inline bool is_finite(T x) noexcept {
  return x - x == T(0);
}
// Thrust loses the digits of numbers near the smallest ones, and overflows beside the largest: these powers of two carry
// them to where it does neither.
template <class T>
struct Scaled {
  static constexpr int kTinyBits = std::numeric_limits<T>::digits * 2 + 2;  // even
  static constexpr T kUp = sizeof(T) == 4 ? T(0x1p50) : T(0x1p108);
  static constexpr T kRootDown = sizeof(T) == 4 ? T(0x1p-25) : T(0x1p-54);
  static constexpr int kHugeBits = 4;
  static constexpr T kDown = T(0x1p-4);
  static constexpr T kLog2 = T(0.693147180559945309417232121458176568);

  DLBRIDGE_ND_HD static bool is_tiny(complex<T> z) noexcept {
    return std::fabs(z.real()) < std::numeric_limits<T>::min() * kUp &&
           std::fabs(z.imag()) < std::numeric_limits<T>::min() * kUp;
  }
  DLBRIDGE_ND_HD static bool is_huge(complex<T> z) noexcept {
    return std::fabs(z.real()) > std::numeric_limits<T>::max() * kDown ||
           std::fabs(z.imag()) > std::numeric_limits<T>::max() * kDown;
  }
};
}  // namespace detail

// Beside a real part of minus infinity any angle gives 0, with the sign that the C library has.
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_exp(complex<T> z) noexcept {
  if (z.real() == -std::numeric_limits<T>::infinity() && !detail::is_finite(z.imag()))
    return {T(0), std::copysign(T(0), z.imag())};
  return detail::from_lib<T>(detail::lib::exp(detail::to_lib<T>(z)));
}

template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_sqrt(complex<T> z) noexcept {
  using Scaled = detail::Scaled<T>;
  const bool tiny = Scaled::is_tiny(z);
  if (tiny) z = {z.real() * Scaled::kUp, z.imag() * Scaled::kUp};
  const complex<T> root = detail::from_lib<T>(detail::lib::sqrt(detail::to_lib<T>(z)));
  return tiny ? complex<T>(root.real() * Scaled::kRootDown, root.imag() * Scaled::kRootDown) : root;
}

template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_log(complex<T> z) noexcept {
  using Scaled = detail::Scaled<T>;
  const T x = z.real(), y = z.imag();
  if (!detail::is_finite(x) || !detail::is_finite(y))
    return {std::log(hypot(x, y)), std::atan2(y, x)};  // an infinity is one whatever the other part is
  const bool tiny = Scaled::is_tiny(z), huge = Scaled::is_huge(z);
  const T scale = tiny ? Scaled::kUp : huge ? Scaled::kDown : T(1);
  const int bits = tiny ? -Scaled::kTinyBits : huge ? Scaled::kHugeBits : 0;
  const auto log = detail::lib::log(detail::lib_complex<T>(x * scale, y * scale));
  return {log.real() + T(bits) * Scaled::kLog2, log.imag()};
}

template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_acosh(complex<T> z) noexcept {
  const T x = z.real(), y = z.imag();
  if (detail::is_finite(x) && detail::is_finite(y))
    return detail::from_lib<T>(detail::lib::acosh(detail::to_lib<T>(z)));
  const T length = hypot(x, y);
  if (length == length) return {length, std::atan2(y, x)};  // infinite
  return {length, x == T(0) ? T(1.570796326794896619231321691639751442) : length};
}

// On the imaginary axis the real part is 0, whatever the other is.
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_tanh(complex<T> z) noexcept {
  if (z.real() == T(0) && !detail::is_finite(z.imag())) return {z.real(), std::numeric_limits<T>::quiet_NaN()};
  return detail::from_lib<T>(detail::lib::tanh(detail::to_lib<T>(z)));
}

// tan(z) = -i tanh(i z)
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_tan(complex<T> z) noexcept {
  if (z.imag() == T(0) && !detail::is_finite(z.real())) return {std::numeric_limits<T>::quiet_NaN(), z.imag()};
  return detail::from_lib<T>(detail::lib::tan(detail::to_lib<T>(z)));
}

template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_log2(complex<T> z) noexcept {
  const complex<T> log = complex_log(z);
  constexpr T kScale = T(1.442695040888963407359924681001892137);
  return {log.real() * kScale, log.imag() * kScale};
}

template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_log10(complex<T> z) noexcept {
  const complex<T> log = complex_log(z);
  constexpr T kScale = T(0.434294481903251827651128918916605082);
  return {log.real() * kScale, log.imag() * kScale};
}

template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_exp2(complex<T> z) noexcept {
  constexpr T kScale = T(0.693147180559945309417232121458176568);
  return complex_exp(complex<T>(z.real() * kScale, z.imag() * kScale));
}

// Near 0, |1 + z|^2 - 1 = x * (2 + x) + y^2 keeps the digits that 1 + x would drop.
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_log1p(complex<T> z) noexcept {
  const T x = z.real(), y = z.imag();
  const T angle = std::atan2(y, x + T(1));
  if (std::fabs(x) < T(0.5) && std::fabs(y) < T(0.5)) return {T(0.5) * std::log1p(x * (x + T(2)) + y * y), angle};
  return {std::log(hypot(x + T(1), y)), angle};
}

// exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin(y / 2)^2
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_expm1(complex<T> z) noexcept {
  const T half_sine = std::sin(z.imag() / T(2));
  return {std::expm1(z.real()) * std::cos(z.imag()) - T(2) * half_sine * half_sine,
          std::exp(z.real()) * std::sin(z.imag())};
}

namespace detail {
// The product by C99's annex G: infinite where a factor is, though the textbook's formula has NaN for both parts.
template <class T>
DLBRIDGE_ND_HD inline complex<T> multiply_infinite(complex<T> a, complex<T> b) noexcept {
  const complex<T> product = fn::multiply(a, b);
  if (!is_nan(product.real()) || !is_nan(product.imag())) return product;
  const auto is_infinite = [](complex<T> z) { return std::isinf(z.real()) || std::isinf(z.imag()); };
  const bool first = is_infinite(a), second = is_infinite(b);
  if (!first && !second) return product;
  // The direction of an infinity; NaN beside one is a zero.
  const auto boxed = [](complex<T> z, bool infinite) {
    const auto part = [infinite](T x) { return std::copysign(infinite ? T(std::isinf(x)) : is_nan(x) ? T(0) : x, x); };
    return complex<T>(part(z.real()), part(z.imag()));
  };
  const complex<T> direction = fn::multiply(boxed(a, first), boxed(b, second));
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return {kInfinity * direction.real(), kInfinity * direction.imag()};
}
}  // namespace detail

// Small integer exponents by squaring, which keeps Gaussian integers exact; others by the definition, in which infinities
// survive the product.
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_power(complex<T> base, complex<T> exponent) noexcept {
  const T re = exponent.real();
  if (re == T(0) && exponent.imag() == T(0)) return {T(1), T(0)};
  if (base.real() == T(0) && base.imag() == T(0)) {
    if (re > T(0)) return {T(0), T(0)};
    return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
  }
  if (exponent.imag() == T(0) && re > T(-100) && re < T(100) && re == std::trunc(re)) {
    complex<T> square = base, result{T(1), T(0)};
    bool first = true;
    for (int rest = static_cast<int>(std::fabs(re)); rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) result = first ? square : multiply(result, square), first = false;
      if (rest > 1) square = multiply(square, square);
    }
    return re < T(0) ? divide(complex<T>(T(1), T(0)), result) : result;
  }
  return complex_exp(detail::multiply_infinite(exponent, complex_log(base)));
}

}  // namespace dlbridge::nd::fn
