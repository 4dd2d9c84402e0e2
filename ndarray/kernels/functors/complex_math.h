// Elementary functions of complex numbers. Branch cuts and special values are those of the library beneath: libm's on
// the host, Thrust's (a port of FreeBSD's) on the device. What neither has follows NumPy's formulas.
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

#define DLBRIDGE_ND_COMPLEX_FUNCTION(name)                                   \
  template <class T>                                                         \
  DLBRIDGE_ND_HD inline complex<T> complex_##name(complex<T> z) noexcept {   \
    return detail::from_lib<T>(detail::lib::name(detail::to_lib<T>(z)));     \
  }
DLBRIDGE_ND_COMPLEX_FUNCTION(sqrt)
DLBRIDGE_ND_COMPLEX_FUNCTION(exp)
DLBRIDGE_ND_COMPLEX_FUNCTION(log)
DLBRIDGE_ND_COMPLEX_FUNCTION(sin)
DLBRIDGE_ND_COMPLEX_FUNCTION(cos)
DLBRIDGE_ND_COMPLEX_FUNCTION(tan)
DLBRIDGE_ND_COMPLEX_FUNCTION(asin)
DLBRIDGE_ND_COMPLEX_FUNCTION(acos)
DLBRIDGE_ND_COMPLEX_FUNCTION(atan)
DLBRIDGE_ND_COMPLEX_FUNCTION(sinh)
DLBRIDGE_ND_COMPLEX_FUNCTION(cosh)
DLBRIDGE_ND_COMPLEX_FUNCTION(tanh)
DLBRIDGE_ND_COMPLEX_FUNCTION(asinh)
DLBRIDGE_ND_COMPLEX_FUNCTION(acosh)
DLBRIDGE_ND_COMPLEX_FUNCTION(atanh)
#undef DLBRIDGE_ND_COMPLEX_FUNCTION

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

// Near 0, |1 + z|^2 - 1 = x * (2 + x) + y^2 keeps the digits that 1 + x would drop.
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_log1p(complex<T> z) noexcept {
  const T x = z.real(), y = z.imag();
  const T angle = std::atan2(y, x + T(1));
  if (std::fabs(x) < T(0.5) && std::fabs(y) < T(0.5)) return {T(0.5) * std::log1p(x * (x + T(2)) + y * y), angle};
  return {std::log(std::hypot(x + T(1), y)), angle};
}

// exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin(y / 2)^2
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_expm1(complex<T> z) noexcept {
  const T half_sine = std::sin(z.imag() / T(2));
  return {std::expm1(z.real()) * std::cos(z.imag()) - T(2) * half_sine * half_sine,
          std::exp(z.real()) * std::sin(z.imag())};
}

// Small integer exponents by squaring, which keeps Gaussian integers exact.
template <class T>
DLBRIDGE_ND_HD inline complex<T> complex_power(complex<T> base, complex<T> exponent) noexcept {
  const T re = exponent.real();
  if (re == T(0) && exponent.imag() == T(0)) return {T(1), T(0)};
  if (base.real() == T(0) && base.imag() == T(0)) {
    if (re > T(0) && exponent.imag() == T(0)) return {T(0), T(0)};
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
  return detail::from_lib<T>(detail::lib::pow(detail::to_lib<T>(base), detail::to_lib<T>(exponent)));
}

}  // namespace dlbridge::nd::fn
