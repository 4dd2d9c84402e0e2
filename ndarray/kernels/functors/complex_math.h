// Elementary functions of complex numbers. Branch cuts and special values are those of the library beneath: libm's on
// the host, Thrust's (a port of FreeBSD's) on the device, that of types.cuh in generated kernels; but for what the
// first two answer differently at infinity and NaN: that is here, as C99's annex G has it. What neither has follows
// NumPy's formulas.
#pragma once

#include "ndarray/kernels/functors/math.h"

#if defined(__CUDACC__) && !defined(DLBRIDGE_TYPES_CUH)
#include <thrust/complex.h>
#endif

namespace dlbridge::nd::fn {

namespace detail {
#if defined(DLBRIDGE_TYPES_CUH)
namespace lib = std;
template <class T>
using lib_complex = complex<T>;
#elif defined(__CUDACC__)
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
// Thrust's square root loses the digits of numbers near the smallest ones: kUp carries them to where it does not.
template <class T>
struct Tiny {
  static constexpr T kUp = sizeof(T) == 4 ? T(0x1p50) : T(0x1p108);
  static constexpr T kRootDown = sizeof(T) == 4 ? T(0x1p-25) : T(0x1p-54);
  DLBRIDGE_ND_HD static bool holds(complex<T> z) noexcept {
    return std::fabs(z.real()) < std::numeric_limits<T>::min() * kUp &&
           std::fabs(z.imag()) < std::numeric_limits<T>::min() * kUp;
  }
};

// large^2 + small^2 - 1 to the last digits, for a `large` near 1: the rounding errors of the squares and of the
// difference are added at last.
template <class T>
DLBRIDGE_ND_HD inline T square_minus_one(T large, T small) noexcept {
  if constexpr (sizeof(T) == 4) {
    const double a = large, b = small;
    return static_cast<T>((a - 1) * (a + 1) + b * b);
  } else {
    const T square = rounded_product(large, large), rest = rounded_product(small, small);
    const T below = square - T(1), back = below - square;
    const T lost = (square - (below - back)) + (T(-1) - back) + std::fma(large, large, -square);
    return (below + rest) + (lost + std::fma(small, small, -rest));
  }
}

// log |z| of a finite z for the device, where Thrust's loses digits near |z| = 1 and the smallest numbers, and
// overflows beside the largest.
template <class T>
DLBRIDGE_ND_HD inline T log_length(T x, T y) noexcept {
  x = std::fabs(x), y = std::fabs(y);
  const T large = x > y ? x : y, small = x > y ? y : x;
  if (large > T(0.5) && large < T(1.5)) return T(0.5) * std::log1p(square_minus_one(large, small));
  constexpr T kUp = T(0x1p64), kDown = T(0x1p-64), kLog2 = T(0.693147180559945309417232121458176568);
  if (large < std::numeric_limits<T>::min() * kUp) return std::log(hypot(x * kUp, y * kUp)) - T(64) * kLog2;
  if (large > std::numeric_limits<T>::max() * kDown) return std::log(hypot(x * kDown, y * kDown)) + T(64) * kLog2;
  return std::log(hypot(x, y));
}
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
  using Tiny = detail::Tiny<T>;
  const bool tiny = Tiny::holds(z);
  if (tiny) z = {z.real() * Tiny::kUp, z.imag() * Tiny::kUp};
  const complex<T> root = detail::from_lib<T>(detail::lib::sqrt(detail::to_lib<T>(z)));
  return tiny ? complex<T>(root.real() * Tiny::kRootDown, root.imag() * Tiny::kRootDown) : root;
}

template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_log(complex<T> z) noexcept {
  const T x = z.real(), y = z.imag();
  if (!detail::is_finite(x) || !detail::is_finite(y))
    return {std::log(hypot(x, y)), std::atan2(y, x)};  // an infinity is one whatever the other part is
#if defined(__CUDA_ARCH__)
  return {detail::log_length(x, y), std::atan2(y, x)};
#else
  return detail::from_lib<T>(std::log(detail::to_lib<T>(z)));
#endif
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
// The product by C99's annex G: infinite where a factor is or a product overflows, though the textbook's formula has
// NaN for both parts.
template <class T>
DLBRIDGE_ND_HD inline complex<T> multiply_infinite(complex<T> a, complex<T> b) noexcept {
  const T reals = rounded_product(a.real(), b.real()), imaginaries = rounded_product(a.imag(), b.imag());
  const T first = rounded_product(a.real(), b.imag()), second = rounded_product(a.imag(), b.real());
  const complex<T> product(reals - imaginaries, first + second);
  if (!is_nan(product.real()) || !is_nan(product.imag())) return product;
  const auto infinite = [](T x, T y) { return std::isinf(x) || std::isinf(y); };
  const bool from_a = infinite(a.real(), a.imag()), from_b = infinite(b.real(), b.imag());
  if (!from_a && !from_b && !infinite(reals, imaginaries) && !infinite(first, second)) return product;
  // The direction of an infinity; NaN beside one is a zero.
  const auto boxed = [](T x, bool of_infinite) {
    return std::copysign(of_infinite ? T(std::isinf(x)) : is_nan(x) ? T(0) : x, x);
  };
  const T ar = boxed(a.real(), from_a), ai = boxed(a.imag(), from_a);
  const T br = boxed(b.real(), from_b), bi = boxed(b.imag(), from_b);
  const T infinity = std::numeric_limits<T>::infinity();
  return {infinity * (rounded_product(ar, br) - rounded_product(ai, bi)),
          infinity * (rounded_product(ar, bi) + rounded_product(ai, br))};
}
}  // namespace detail

// Small integer exponents by squaring, which keeps Gaussian integers exact; others by the definition, in which
// infinities survive the product.
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
