// Comparison, truth, bits and shifts with NumPy's semantics; on arithmetic types (16-bit floats come as float).
#pragma once

#include "ndarray/kernels/numbers.h"

namespace dlbridge::nd::fn {

template <class T>
using unsigned_t = std::make_unsigned_t<T>;

template <class A>
DLBRIDGE_ND_HD inline bool is_nan(A x) noexcept {
  if constexpr (is_complex_v<A>) return x.real() != x.real() || x.imag() != x.imag();
  else if constexpr (std::is_floating_point_v<A>) return x != x;
  else return false;
}

template <class A>
DLBRIDGE_ND_HD inline bool is_inf(A x) noexcept {
  if constexpr (is_complex_v<A>) return is_inf(x.real()) || is_inf(x.imag());
  else return x == std::numeric_limits<A>::infinity() || x == -std::numeric_limits<A>::infinity();
}

template <class A>
DLBRIDGE_ND_HD inline bool is_finite(A x) noexcept {
  if constexpr (is_complex_v<A>) return is_finite(x.real()) && is_finite(x.imag());
  else return x - x == A(0);  // inf - inf and NaN - NaN are NaN
}

template <class A>
DLBRIDGE_ND_HD inline bool signbit(A x) noexcept {
  if constexpr (std::is_same_v<A, float>) return (bits_as<std::uint32_t>(x) >> 31) != 0;
  else if constexpr (std::is_same_v<A, double>) return (bits_as<std::uint64_t>(x) >> 63) != 0;
  else if constexpr (std::is_signed_v<A>) return x < A(0);
  else return false;
}

template <class A>
DLBRIDGE_ND_HD inline bool truth(A x) noexcept {
  if constexpr (is_complex_v<A>) return x.real() != 0 || x.imag() != 0;
  else return x != A(0);
}

template <class A>
DLBRIDGE_ND_HD inline bool equal(A a, A b) noexcept {
  if constexpr (is_complex_v<A>) return a.real() == b.real() && a.imag() == b.imag();
  else return a == b;
}

// Complex numbers are ordered lexicographically; a pair with a NaN anywhere that counts is unordered.
template <class A>
DLBRIDGE_ND_HD inline bool less(A a, A b) noexcept {
  if constexpr (is_complex_v<A>)
    return (a.real() < b.real() && !is_nan(a.imag()) && !is_nan(b.imag())) ||
           (a.real() == b.real() && a.imag() < b.imag());
  else return a < b;
}

template <class A>
DLBRIDGE_ND_HD inline bool less_equal(A a, A b) noexcept {
  if constexpr (is_complex_v<A>)
    return (a.real() < b.real() && !is_nan(a.imag()) && !is_nan(b.imag())) ||
           (a.real() == b.real() && a.imag() <= b.imag());
  else return a <= b;
}

// Bits that leave the value are gone: a count outside [0, width) gives 0, to the right the sign all over.
template <class A>
DLBRIDGE_ND_HD inline A left_shift(A a, A count) noexcept {
  using U = unsigned_t<A>;
  return static_cast<U>(count) < sizeof(A) * 8 ? static_cast<A>(static_cast<U>(a) << static_cast<U>(count)) : A(0);
}

template <class A>
DLBRIDGE_ND_HD inline A right_shift(A a, A count) noexcept {
  if (static_cast<unsigned_t<A>>(count) < sizeof(A) * 8) return static_cast<A>(a >> count);
  if constexpr (std::is_signed_v<A>) return a < A(0) ? A(-1) : A(0);
  return A(0);
}

}  // namespace dlbridge::nd::fn
