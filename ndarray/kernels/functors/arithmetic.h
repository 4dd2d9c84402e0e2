// Arithmetic with NumPy's semantics, on arithmetic types (16-bit floats come as float). Integers wrap; their division
// by zero gives 0, and the smallest integer divided by -1 stays what it is.
#pragma once

#include "ndarray/kernels/functors/logic.h"

namespace dlbridge::nd::fn {

// Integer arithmetic is done in an unsigned type of at least 32 bits, where wrapping is defined and no promotion to
// int can overflow (65535 * 65535).
template <class T>
using wrap_t = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
template <class A>
DLBRIDGE_ND_HD constexpr auto wrap(A x) noexcept {
  return static_cast<wrap_t<A>>(x);
}

// Sums, differences and products that are rounded on a device, too: a fused kernel would else make one instruction of
// the product of one operation and the sum of the next.
#if defined(__CUDA_ARCH__)
DLBRIDGE_ND_HD inline float rounded_sum(float a, float b) noexcept { return __fadd_rn(a, b); }
DLBRIDGE_ND_HD inline double rounded_sum(double a, double b) noexcept { return __dadd_rn(a, b); }
DLBRIDGE_ND_HD inline float rounded_difference(float a, float b) noexcept { return __fsub_rn(a, b); }
DLBRIDGE_ND_HD inline double rounded_difference(double a, double b) noexcept { return __dsub_rn(a, b); }
DLBRIDGE_ND_HD inline float rounded_product(float a, float b) noexcept { return __fmul_rn(a, b); }
DLBRIDGE_ND_HD inline double rounded_product(double a, double b) noexcept { return __dmul_rn(a, b); }
template <class T>
DLBRIDGE_ND_HD inline complex<T> rounded_sum(complex<T> a, complex<T> b) noexcept {
  return {rounded_sum(a.real(), b.real()), rounded_sum(a.imag(), b.imag())};
}
template <class T>
DLBRIDGE_ND_HD inline complex<T> rounded_difference(complex<T> a, complex<T> b) noexcept {
  return {rounded_difference(a.real(), b.real()), rounded_difference(a.imag(), b.imag())};
}
// The textbook formula, as NumPy and every GPU library use; infinities are not recovered. Which of the products is
// rounded is said here, for a compiler may choose another in each kernel.
template <class T>
DLBRIDGE_ND_HD inline complex<T> rounded_product(complex<T> a, complex<T> b) noexcept {
  return {std::fma(a.real(), b.real(), -rounded_product(a.imag(), b.imag())),
          std::fma(a.real(), b.imag(), rounded_product(a.imag(), b.real()))};
}
#else
template <class A>
DLBRIDGE_ND_HD inline A rounded_sum(A a, A b) noexcept {
  return a + b;
}
template <class A>
DLBRIDGE_ND_HD inline A rounded_difference(A a, A b) noexcept {
  return a - b;
}
template <class A>
DLBRIDGE_ND_HD inline A rounded_product(A a, A b) noexcept {
  if constexpr (is_complex_v<A>)
    return A(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else return a * b;
}
#endif

template <class A>
DLBRIDGE_ND_HD inline A add(A a, A b) noexcept {
  if constexpr (is_integer_v<A>) return static_cast<A>(wrap(a) + wrap(b));
  else return rounded_sum(a, b);
}

template <class A>
DLBRIDGE_ND_HD inline A subtract(A a, A b) noexcept {
  if constexpr (is_integer_v<A>) return static_cast<A>(wrap(a) - wrap(b));
  else return rounded_difference(a, b);
}

template <class A>
DLBRIDGE_ND_HD inline A multiply(A a, A b) noexcept {
  if constexpr (is_integer_v<A>) return static_cast<A>(wrap(a) * wrap(b));
  else return rounded_product(a, b);
}

// Smith's method: no overflow in between.
template <class T>
DLBRIDGE_ND_HD inline complex<T> divide(complex<T> a, complex<T> b) noexcept {
  const T br = b.real(), bi = b.imag();
  const T br_abs = std::fabs(br), bi_abs = std::fabs(bi);  // of -0, too: NumPy divides by +0
  if (br_abs >= bi_abs) {
    if (br_abs == T(0) && bi_abs == T(0)) return {a.real() / br_abs, a.imag() / br_abs};
    const T ratio = bi / br;
    const T scale = T(1) / (br + bi * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
  }
  const T ratio = br / bi;
  const T scale = T(1) / (bi + br * ratio);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
}
template <class T>
DLBRIDGE_ND_HD inline T divide(T a, T b) noexcept {
  return a / b;
}

template <class A>
DLBRIDGE_ND_HD inline A negative(A x) noexcept {
  if constexpr (is_integer_v<A>) return static_cast<A>(wrap_t<A>{0} - wrap(x));
  else return -x;
}

template <class T>
DLBRIDGE_ND_HD inline T hypot(T x, T y) noexcept {
#if !defined(__CUDA_ARCH__)
  // Scaled where a square could overflow, or lose digits below the least normal number: choices, so that it is vectors.
  constexpr bool single = sizeof(T) == 4;
  constexpr T kLarge = single ? T(0x1p60) : T(0x1p500), kSmall = single ? T(0x1p-40) : T(0x1p-400);
  constexpr T kDown = single ? T(0x1p-70) : T(0x1p-600), kUp = single ? T(0x1p100) : T(0x1p700);
  x = std::fabs(x), y = std::fabs(y);
  const T larger = x > y ? x : y, smaller = x > y ? y : x;  // of a NaN: that is the smaller, and makes the sum one
  const bool is_large = larger > kLarge, is_small = larger < kSmall;
  const T scale = is_large ? kDown : is_small ? kUp : T(1);
  const T back = is_large ? T(1) / kDown : is_small ? T(1) / kUp : T(1);
  const T a = larger * scale, b = smaller * scale;
  const T length = std::sqrt(a * a + b * b) * back;
  const T infinity = std::numeric_limits<T>::infinity();
  return x == infinity || y == infinity ? infinity : length;
#else
  const T length = std::hypot(x, y);
  // CUDA's for double (13.0) is infinite beside the largest numbers, where the larger one alone is the length.
  if constexpr (sizeof(T) == 8) {
    const T larger = std::fmax(std::fabs(x), std::fabs(y)), smaller = std::fmin(std::fabs(x), std::fabs(y));
    if (std::isinf(length) && !std::isinf(larger) && smaller <= larger * T(0x1p-27)) return larger;
  }
  return length;
#endif
}

template <class A>
DLBRIDGE_ND_HD inline auto absolute(A x) noexcept {
  if constexpr (is_complex_v<A>) return hypot(x.real(), x.imag());
  else if constexpr (std::is_floating_point_v<A>) return std::fabs(x);
  else if constexpr (std::is_signed_v<A>) return x < A(0) ? negative(x) : x;
  else return x;
}

// Complex: z / |z|, by choices, so that it is vectors.
template <class A>
DLBRIDGE_ND_HD inline A sign(A x) noexcept {
  if constexpr (is_complex_v<A>) {
    using T = real_t<A>;
    constexpr T kLarge = std::numeric_limits<T>::max() / T(4);  // beyond, the magnitude alone could overflow
    const T scale = std::fabs(x.real()) > kLarge || std::fabs(x.imag()) > kLarge ? T(0.25) : T(1);
    const T real = x.real() * scale, imag = x.imag() * scale, length = hypot(real, imag);
    const T infinite = is_inf(real) && is_inf(imag) ? std::numeric_limits<T>::quiet_NaN() : T(1);  // any direction
    // To add -0.0 changes nothing, and 0.0 the sign of a zero.
    const T divisor = length == T(0) ? T(1) : length, zero = length == T(0) ? T(0) : -T(0);
    const T of_real = is_inf(real) ? std::copysign(infinite, real) : is_inf(imag) ? T(0) : real / divisor + zero;
    const T of_imag = is_inf(imag) ? std::copysign(infinite, imag) : is_inf(real) ? T(0) : imag / divisor + zero;
    return A(of_real, of_imag);
  } else if constexpr (std::is_floating_point_v<A>) {
    return x > A(0) ? A(1) : x < A(0) ? A(-1) : x == A(0) ? A(0) : x;
  } else if constexpr (std::is_signed_v<A>) {
    return static_cast<A>((x > A(0)) - (x < A(0)));
  } else {
    return x != A(0) ? A(1) : A(0);
  }
}

template <class A>
DLBRIDGE_ND_HD inline A reciprocal(A x) noexcept {
  if constexpr (is_complex_v<A>) return divide(A(1, 0), x);
  else if constexpr (is_integer_v<A>) return x == A(1) || (std::is_signed_v<A> && negative(x) == A(1)) ? x : A(0);
  else return A(1) / x;
}

// Integer division that no operands can make undefined: by zero 0, by -1 the (wrapping) negative.
template <class A>
DLBRIDGE_ND_HD inline bool divides_badly(A b) noexcept {
  if constexpr (std::is_signed_v<A>) return b == A(0) || b == A(-1);
  else return b == A(0);
}

// C's remainder of floats, which the library divides for bit by bit. So where the quotient is small enough, it is
// rounded to the whole number below it or to the next, and then the rest is exact by one instruction.
template <class T>
DLBRIDGE_ND_HD inline T float_remainder(T a, T b) noexcept {
  constexpr T kExact = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
  const T size = std::fabs(b), whole = std::trunc(std::fabs(a) / size);
  if (whole < kExact && !is_inf(size)) {
    const T rest = std::fma(-whole, size, std::fabs(a));
    return std::copysign(rest < T(0) ? rest + size : rest, a);
  }
  return std::fmod(a, b);
}

// Rounds towards minus infinity, also for floats; there by Python's divmod, so that q * b + r gives a again.
template <class A>
DLBRIDGE_ND_HD inline A floor_divide(A a, A b) noexcept {
  if constexpr (is_integer_v<A>) {
    if (divides_badly(b)) return b == A(0) ? A(0) : negative(a);
    const A quotient = static_cast<A>(a / b);
    if constexpr (std::is_signed_v<A>)
      return static_cast<A>(quotient - (((a ^ b) < 0) && static_cast<A>(quotient * b) != a));
    else return quotient;
  } else {
    // One division for three. The formula below gives the whole number under the true quotient up to here; the rounded
    // one may be that, or the next, and then the rest is exact.
    constexpr A kSure = sizeof(A) == 4 ? A(0x1p21) : A(0x1p50);
    const A near = a / b;
    if (std::fabs(near) < kSure && !is_inf(b)) {
      const A whole = std::floor(near);
      if (whole != near) return whole;
      const A rest = std::fma(-near, b, a);
      return rest != A(0) && (rest < A(0)) != (b < A(0)) ? near - A(1) : near;
    }
    if (b == A(0)) return a / b;
    const A mod = float_remainder(a, b);
    A quotient = (a - mod) / b;
    if (mod != A(0) && ((b < A(0)) != (mod < A(0)))) quotient -= A(1);
    if (quotient == A(0)) return std::copysign(A(0), a / b);
    const A floored = std::floor(quotient);
    return quotient - floored > A(0.5) ? floored + A(1) : floored;
  }
}

// The remainder of floor_divide: has the divisor's sign.
template <class A>
DLBRIDGE_ND_HD inline A remainder(A a, A b) noexcept {
  if constexpr (is_integer_v<A>) {
    if (divides_badly(b)) return A(0);
    const A rest = static_cast<A>(a % b);
    if constexpr (std::is_signed_v<A>) return rest != A(0) && ((rest ^ b) < 0) ? static_cast<A>(rest + b) : rest;
    else return rest;
  } else {
    const A mod = float_remainder(a, b);
    if (b == A(0)) return mod;
    if (mod == A(0)) return std::copysign(A(0), b);
    return (b < A(0)) != (mod < A(0)) ? mod + b : mod;
  }
}

// C's remainder: has the dividend's sign.
template <class A>
DLBRIDGE_ND_HD inline A fmod(A a, A b) noexcept {
  if constexpr (is_integer_v<A>) return divides_badly(b) ? A(0) : static_cast<A>(a % b);
  else return float_remainder(a, b);
}

// base ** exponent by squaring. A negative exponent gives what truncating the true value gives, and 0 ** -n is 0.
template <class A>
DLBRIDGE_ND_HD inline A integer_power(A base, A exponent) noexcept {
  if constexpr (std::is_signed_v<A>) {
    if (exponent < A(0)) {
      if (base == A(1)) return base;
      if (base == A(-1)) return (exponent & 1) != 0 ? base : A(1);
      return A(0);
    }
  }
  wrap_t<A> square = wrap(base), result = 1;
  for (unsigned_t<A> rest = static_cast<unsigned_t<A>>(exponent); rest != 0;) {
    if ((rest & 1) != 0) result *= square;
    rest = static_cast<unsigned_t<A>>(rest >> 1);
    square *= square;
  }
  return static_cast<A>(result);
}

// maximum and minimum propagate NaN, fmax and fmin prefer the other operand to it. Both conditions are asked, so that
// no branch keeps a loop from becoming vectors.
template <class A>
DLBRIDGE_ND_HD inline A choose(bool first, bool too, A a, A b) noexcept {
  return static_cast<bool>(first | too) ? a : b;
}
template <class A>
DLBRIDGE_ND_HD inline A maximum(A a, A b) noexcept {
  return choose(is_nan(a), less_equal(b, a), a, b);
}
template <class A>
DLBRIDGE_ND_HD inline A minimum(A a, A b) noexcept {
  return choose(is_nan(a), less_equal(a, b), a, b);
}
template <class A>
DLBRIDGE_ND_HD inline A fmax(A a, A b) noexcept {
  return choose(is_nan(b), less_equal(b, a), a, b);
}
template <class A>
DLBRIDGE_ND_HD inline A fmin(A a, A b) noexcept {
  return choose(is_nan(b), less_equal(a, b), a, b);
}

template <class A>
DLBRIDGE_ND_HD inline A clip(A x, A low, A high) noexcept {
  if constexpr (is_complex_v<A>) return minimum(maximum(x, low), high);
  x = choose(low > x, is_nan(low), low, x);  // the same: a NaN is neither above nor below
  return choose(high < x, is_nan(high), high, x);
}

// The magnitude in the unsigned type, which holds that of the lowest integer, too.
template <class A>
DLBRIDGE_ND_HD inline unsigned_t<A> magnitude(A x) noexcept {
  return static_cast<unsigned_t<A>>(absolute(x));
}

template <class A>
DLBRIDGE_ND_HD inline A gcd(A a, A b) noexcept {
  auto x = magnitude(a), y = magnitude(b);
  while (y != 0) {
    const auto rest = static_cast<unsigned_t<A>>(x % y);
    x = y;
    y = rest;
  }
  return static_cast<A>(x);
}

template <class A>
DLBRIDGE_ND_HD inline A lcm(A a, A b) noexcept {
  const auto divisor = magnitude(gcd(a, b));
  return divisor == 0 ? A(0)
                      : static_cast<A>(wrap(static_cast<unsigned_t<A>>(magnitude(a) / divisor)) * wrap(magnitude(b)));
}

// How many bits of the magnitude are 1: sums of neighbours, of pairs, of fours, and by a multiplication of all bytes.
template <class A>
DLBRIDGE_ND_HD inline std::uint8_t bit_count(A x) noexcept {
  using U = wrap_t<A>;
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(U) == 4) return static_cast<std::uint8_t>(__popc(magnitude(x)));
  else return static_cast<std::uint8_t>(__popcll(magnitude(x)));
#else
  if constexpr (sizeof(A) == 1) {  // in bytes, of which a vector holds more
    auto bits = static_cast<std::uint8_t>(magnitude(x));
    bits = static_cast<std::uint8_t>(bits - (bits >> 1 & 0x55));
    bits = static_cast<std::uint8_t>((bits & 0x33) + (bits >> 2 & 0x33));
    return static_cast<std::uint8_t>((bits + (bits >> 4)) & 0x0f);
  }
  constexpr U kOnes = static_cast<U>(~U{0});
  auto bits = static_cast<U>(magnitude(x));
  bits -= bits >> 1 & kOnes / 3;
  bits = (bits & kOnes / 5) + (bits >> 2 & kOnes / 5);
  bits = (bits + (bits >> 4)) & kOnes / 17;
  return static_cast<std::uint8_t>(bits * (kOnes / 255) >> (sizeof(U) * 8 - 8));
#endif
}

}  // namespace dlbridge::nd::fn
