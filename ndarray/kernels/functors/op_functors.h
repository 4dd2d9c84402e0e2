// Which function each operation is: OpFn<op, C> computes in C, the storage type of the compute dtype.
#pragma once

#include "ndarray/kernels/functors/arithmetic.h"
#include "ndarray/kernels/functors/complex_math.h"
#include "ndarray/kernels/functors/logic.h"
#include "ndarray/kernels/functors/math.h"
#include "ndarray/kernels/op_table.h"

namespace dlbridge::nd {

template <Op op, class C>
struct OpFn;

#define DLBRIDGE_ND_UNARY(id, expression)                                     \
  template <class C>                                                          \
  struct OpFn<Op::id, C> {                                                    \
    using A = arith_t<C>;                                                     \
    DLBRIDGE_ND_HD auto operator()(A x) const noexcept { return expression; } \
  };
#define DLBRIDGE_ND_BINARY(id, expression)                                         \
  template <class C>                                                               \
  struct OpFn<Op::id, C> {                                                         \
    using A = arith_t<C>;                                                          \
    DLBRIDGE_ND_HD auto operator()(A a, A b) const noexcept { return expression; } \
  };
// A real function and its complex namesake.
#define DLBRIDGE_ND_MATH(id, real_name, complex_name)                      \
  template <class C>                                                       \
  struct OpFn<Op::id, C> {                                                 \
    using A = arith_t<C>;                                                  \
    DLBRIDGE_ND_HD A operator()(A x) const noexcept {                      \
      if constexpr (is_complex_v<C>) return fn::complex_##complex_name(x); \
      else return std::real_name(x);                                       \
    }                                                                      \
  };

DLBRIDGE_ND_UNARY(kPositive, x)
DLBRIDGE_ND_UNARY(kNegative, fn::negative(x))
DLBRIDGE_ND_UNARY(kAbsolute, fn::absolute(x))
DLBRIDGE_ND_UNARY(kSign, fn::sign(x))
DLBRIDGE_ND_UNARY(kSquare, fn::multiply(x, x))
DLBRIDGE_ND_UNARY(kReciprocal, fn::reciprocal(x))
DLBRIDGE_ND_UNARY(kConjugate, A(x.real(), -x.imag()))
DLBRIDGE_ND_UNARY(kFloor, std::floor(x))
DLBRIDGE_ND_UNARY(kCeil, std::ceil(x))
DLBRIDGE_ND_UNARY(kTrunc, std::trunc(x))
DLBRIDGE_ND_UNARY(kDegrees, x* A(57.295779513082320877))
DLBRIDGE_ND_UNARY(kRadians, x* A(0.017453292519943295769))
DLBRIDGE_ND_UNARY(kCbrt, std::cbrt(x))
DLBRIDGE_ND_UNARY(kRsqrt, fn::rsqrt(x))
DLBRIDGE_ND_UNARY(kErf, std::erf(x))
DLBRIDGE_ND_UNARY(kLogicalNot, !fn::truth(x))
DLBRIDGE_ND_UNARY(kIsNan, fn::is_nan(x))
DLBRIDGE_ND_UNARY(kIsInf, fn::is_inf(x))
DLBRIDGE_ND_UNARY(kIsFinite, fn::is_finite(x))
DLBRIDGE_ND_UNARY(kSignbit, fn::signbit(x))
DLBRIDGE_ND_UNARY(kInvert, static_cast<A>(~x))
DLBRIDGE_ND_UNARY(kBitwiseCount, fn::bit_count(x))

DLBRIDGE_ND_MATH(kSqrt, sqrt, sqrt)
DLBRIDGE_ND_MATH(kExp, exp, exp)
DLBRIDGE_ND_MATH(kExp2, exp2, exp2)
DLBRIDGE_ND_MATH(kExpm1, expm1, expm1)
DLBRIDGE_ND_MATH(kLog, log, log)
DLBRIDGE_ND_MATH(kLog2, log2, log2)
DLBRIDGE_ND_MATH(kLog10, log10, log10)
DLBRIDGE_ND_MATH(kLog1p, log1p, log1p)
DLBRIDGE_ND_MATH(kSin, sin, sin)
DLBRIDGE_ND_MATH(kCos, cos, cos)
DLBRIDGE_ND_MATH(kTan, tan, tan)
DLBRIDGE_ND_MATH(kArcsin, asin, asin)
DLBRIDGE_ND_MATH(kArccos, acos, acos)
DLBRIDGE_ND_MATH(kArctan, atan, atan)
DLBRIDGE_ND_MATH(kSinh, sinh, sinh)
DLBRIDGE_ND_MATH(kCosh, cosh, cosh)
DLBRIDGE_ND_MATH(kTanh, tanh, tanh)
DLBRIDGE_ND_MATH(kArcsinh, asinh, asinh)
DLBRIDGE_ND_MATH(kArccosh, acosh, acosh)
DLBRIDGE_ND_MATH(kArctanh, atanh, atanh)

template <class C>
struct OpFn<Op::kRint, C> {
  using A = arith_t<C>;
  DLBRIDGE_ND_HD A operator()(A x) const noexcept {
    if constexpr (is_complex_v<C>) return A(std::rint(x.real()), std::rint(x.imag()));
    else return std::rint(x);
  }
};

template <class C>
struct OpFn<Op::kSinc, C> {
  using A = arith_t<C>;
  DLBRIDGE_ND_HD A operator()(A x) const noexcept {
    constexpr real_t<A> kPi = static_cast<real_t<A>>(3.141592653589793238);
    if (!fn::truth(x)) return A(1);
    if constexpr (is_complex_v<C>) {
      const A y(x.real() * kPi, x.imag() * kPi);
      return fn::divide(fn::complex_sin(y), y);
    } else {
      const A y = x * kPi;
      return std::sin(y) / y;
    }
  }
};

template <class C>
struct OpFn<Op::kExpit, C> {
  using A = arith_t<C>;
  DLBRIDGE_ND_HD A operator()(A x) const noexcept {
    const A small = std::exp(-std::fabs(x));  // never overflows, so that far below 0 the result is still exp(x)
    return (x < A(0) ? small : A(1)) / (A(1) + small);
  }
};

DLBRIDGE_ND_BINARY(kAdd, fn::add(a, b))
DLBRIDGE_ND_BINARY(kSubtract, fn::subtract(a, b))
DLBRIDGE_ND_BINARY(kMultiply, fn::multiply(a, b))
DLBRIDGE_ND_BINARY(kDivide, fn::divide(a, b))
DLBRIDGE_ND_BINARY(kFloorDivide, fn::floor_divide(a, b))
DLBRIDGE_ND_BINARY(kRemainder, fn::remainder(a, b))
DLBRIDGE_ND_BINARY(kFmod, fn::fmod(a, b))
DLBRIDGE_ND_BINARY(kMaximum, fn::maximum(a, b))
DLBRIDGE_ND_BINARY(kMinimum, fn::minimum(a, b))
DLBRIDGE_ND_BINARY(kFmax, fn::fmax(a, b))
DLBRIDGE_ND_BINARY(kFmin, fn::fmin(a, b))
DLBRIDGE_ND_BINARY(kEqual, fn::equal(a, b))
DLBRIDGE_ND_BINARY(kNotEqual, !fn::equal(a, b))
DLBRIDGE_ND_BINARY(kLess, fn::less(a, b))
DLBRIDGE_ND_BINARY(kLessEqual, fn::less_equal(a, b))
DLBRIDGE_ND_BINARY(kLogicalAnd, fn::truth(a) && fn::truth(b))
DLBRIDGE_ND_BINARY(kLogicalOr, fn::truth(a) || fn::truth(b))
DLBRIDGE_ND_BINARY(kLogicalXor, fn::truth(a) != fn::truth(b))
DLBRIDGE_ND_BINARY(kBitwiseAnd, static_cast<A>(a& b))
DLBRIDGE_ND_BINARY(kBitwiseOr, static_cast<A>(a | b))
DLBRIDGE_ND_BINARY(kBitwiseXor, static_cast<A>(a ^ b))
DLBRIDGE_ND_BINARY(kLeftShift, fn::left_shift(a, b))
DLBRIDGE_ND_BINARY(kRightShift, fn::right_shift(a, b))
DLBRIDGE_ND_BINARY(kGcd, fn::gcd(a, b))
DLBRIDGE_ND_BINARY(kLcm, fn::lcm(a, b))
DLBRIDGE_ND_BINARY(kArctan2, std::atan2(a, b))
DLBRIDGE_ND_BINARY(kHypot, fn::hypot(a, b))
DLBRIDGE_ND_BINARY(kCopysign, std::copysign(a, b))
DLBRIDGE_ND_BINARY(kNextafter, fn::nextafter<C>(a, b))
DLBRIDGE_ND_BINARY(kLogaddexp, fn::logaddexp(a, b))
DLBRIDGE_ND_BINARY(kLogaddexp2, fn::logaddexp2(a, b))
DLBRIDGE_ND_BINARY(kHeaviside, fn::heaviside(a, b))

template <class C>
struct OpFn<Op::kPower, C> {
  using A = arith_t<C>;
  DLBRIDGE_ND_HD A operator()(A base, A exponent) const noexcept {
    if constexpr (is_complex_v<C>) return fn::complex_power(base, exponent);
    else if constexpr (is_integer_v<C>) return fn::integer_power(base, exponent);
    else return fn::real_power(base, exponent);
  }
};

template <class C>
struct OpFn<Op::kWhere, C> {  // moves elements and keeps their bits: no arithmetic type in between
  DLBRIDGE_ND_HD C operator()(bool condition, C a, C b) const noexcept { return condition ? a : b; }
};
template <class C>
struct OpFn<Op::kClip, C> {
  using A = arith_t<C>;
  DLBRIDGE_ND_HD A operator()(A x, A low, A high) const noexcept { return fn::clip(x, low, high); }
};

#undef DLBRIDGE_ND_UNARY
#undef DLBRIDGE_ND_BINARY
#undef DLBRIDGE_ND_MATH

}  // namespace dlbridge::nd
