// Division of integers in vectors, which have no instruction for it: as floats that have so many bits that no quotient
// which is not whole is rounded to a whole number; then the whole number below it is right. The divisors that C has no
// division for are replaced by 1, and looked at afterwards.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ndarray/kernels/functors/arithmetic.h"

namespace dlbridge::nd::host_kernels {

// Whole numbers to floats and back by bits alone, for vectors that cannot convert those of 64 bits: within 2^51 the sum
// with this float is a whole number of units in its last place.
inline constexpr double kWholes = 0x1.8p52;
inline constexpr auto kBitsOfWholes = std::bit_cast<std::int64_t>(kWholes);

template <class A>
struct FloatOfWhole {  // of up to 16 bits
  using Float = float;
  static Float to(A x) noexcept { return static_cast<Float>(x); }
  static A from(Float x) noexcept { return static_cast<A>(static_cast<std::int32_t>(x)); }
};
template <class A>
  requires(sizeof(A) >= 4)
struct FloatOfWhole<A> {  // of 32 bits, and of 64 within 2^51
  using Float = double;
  static Float to(A x) noexcept {
    return std::bit_cast<double>(static_cast<std::int64_t>(x) + kBitsOfWholes) - kWholes;
  }
  static A from(Float x) noexcept { return static_cast<A>(std::bit_cast<std::int64_t>(x + kWholes) - kBitsOfWholes); }
};
template <>
struct FloatOfWhole<std::int32_t> {
  using Float = double;
  static Float to(std::int32_t x) noexcept { return x; }
  static std::int32_t from(Float x) noexcept { return static_cast<std::int32_t>(x); }
};

template <class A>
struct WholeDivision {
  A quotient, rest;
};

// fn::floor_divide and fn::remainder. by_floats: the operands are within what FloatOfWhole takes.
template <bool by_floats, class A>
[[gnu::always_inline]] inline WholeDivision<A> divide_whole(A a, A b) noexcept {
  using Wrapped = fn::wrap_t<A>;
  const bool is_zero = b == A(0), is_minus_one = std::is_signed_v<A> && b == static_cast<A>(-1);
  const A divisor = is_zero || is_minus_one ? A(1) : b;
  A quotient;
  if constexpr (by_floats) {
    using Form = FloatOfWhole<A>;
    quotient = Form::from(std::floor(Form::to(a) / Form::to(divisor)));
  } else {
    quotient = fn::floor_divide(a, divisor);
  }
  quotient = is_minus_one ? fn::negative(a) : quotient;
  quotient = is_zero ? A(0) : quotient;
  const auto product = static_cast<Wrapped>(static_cast<Wrapped>(quotient) * static_cast<Wrapped>(b));
  const auto rest = static_cast<A>(static_cast<Wrapped>(static_cast<Wrapped>(a) - product));
  return {quotient, is_zero ? A(0) : rest};
}

// The same of n elements, which f is given the results of, one after the other.
template <class A, class F>
[[gnu::always_inline]] inline void divide_wholes(const A* a, const A* b, std::int64_t n, F f) noexcept {
  bool by_floats = true;
  if constexpr (sizeof(A) == 8) {
    std::uint64_t bits = 0;  // of signed numbers within 2^50 they end where those of others below 2^51 do
    for (std::int64_t i = 0; i < n; ++i) {
      const auto x = static_cast<std::uint64_t>(a[i]), y = static_cast<std::uint64_t>(b[i]);
      bits |= std::is_signed_v<A> ? (x ^ (x << 1)) | (y ^ (y << 1)) : x | y;
    }
    by_floats = bits >> 51 == 0;
  }
  if (by_floats) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (std::int64_t i = 0; i < n; ++i) f(i, divide_whole<true>(a[i], b[i]));
  } else {
    for (std::int64_t i = 0; i < n; ++i) f(i, divide_whole<false>(a[i], b[i]));
  }
}

}  // namespace dlbridge::nd::host_kernels
