// Elementary functions of real numbers with NumPy's semantics, on float and double (16-bit floats come as float).
#pragma once

#include "ndarray/kernels/functors/arithmetic.h"

namespace dlbridge::nd::fn {

template <class T>
DLBRIDGE_ND_HD inline T rsqrt(T x) noexcept {
#if defined(__CUDA_ARCH__)
  return ::rsqrt(x);
#else
  return T(1) / std::sqrt(x);
#endif
}

// CUDA's pow is right to two units of the last place: whole numbers to whole powers would not be whole.
template <class T>
DLBRIDGE_ND_HD inline T real_power(T base, T exponent) noexcept {
#if defined(__CUDA_ARCH__)
  if (exponent == T(2)) return base * base;
  constexpr T kSure = sizeof(T) == 4 ? T(0x1p21) : T(0x1p50);  // where two units are less than a half
  const T power = std::pow(base, exponent);
  const bool whole = base == std::trunc(base) && exponent == std::trunc(exponent) && exponent > T(0);
  return whole && std::fabs(power) < kSure ? std::rint(power) : power;
#else
  return std::pow(base, exponent);
#endif
}

// log(exp(a) + exp(b)) without overflow; equal infinities give themselves. One way for both orders of a and b, so that
// the threads of a warp go it together.
template <class T>
DLBRIDGE_ND_HD inline T logaddexp(T a, T b) noexcept {
  if (a == b) return a + T(0.693147180559945309417232121458176568);
  const T difference = a - b;
  return (difference > T(0) ? a : b) + std::log1p(std::exp(-std::fabs(difference)));
}

// log2(2**a + 2**b) likewise.
template <class T>
DLBRIDGE_ND_HD inline T logaddexp2(T a, T b) noexcept {
  if (a == b) return a + T(1);
  constexpr T kLog2E = T(1.442695040888963407359924681001892137);
  const T difference = a - b;
  return (difference > T(0) ? a : b) + std::log1p(std::exp2(-std::fabs(difference))) * kLog2E;
}

template <class T>
DLBRIDGE_ND_HD inline T heaviside(T x, T at_zero) noexcept {
  if (is_nan(x)) return x;
  return x == T(0) ? at_zero : x < T(0) ? T(0) : T(1);
}

// The neighbour of `from` towards `to` among the values of the storage format, whose bits `B` order like integers.
template <class B, class T>
DLBRIDGE_ND_HD inline B next_bits(B bits, T from, T to, B to_bits) noexcept {
  constexpr B kSign = static_cast<B>(B{1} << (sizeof(B) * 8 - 1));
  if (from == to) return to_bits;
  if (from == T(0)) return static_cast<B>((to_bits & kSign) | B{1});
  return (from < to) == (from > T(0)) ? static_cast<B>(bits + 1) : static_cast<B>(bits - 1);
}

// nextafter in the spacing of the storage type C, of which float is only the arithmetic for 16-bit formats.
template <class C>
DLBRIDGE_ND_HD inline arith_t<C> nextafter(arith_t<C> from, arith_t<C> to) noexcept {
  if (is_nan(from) || is_nan(to)) return from + to;
  if constexpr (is_half_v<C>) {
    C next = cast<C>(from);
    next.bits = next_bits(next.bits, from, to, cast<C>(to).bits);
    return to_float(next);
  } else {
    using B = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
    return bits_as<C>(next_bits(bits_as<B>(from), from, to, bits_as<B>(to)));
  }
}

}  // namespace dlbridge::nd::fn
