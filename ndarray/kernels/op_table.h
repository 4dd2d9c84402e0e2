// The elementwise operations in one table, which the source of a generated kernel can hold, too: nothing is included.
#pragma once

// X(enumerator, name, operands, rule, dtypes it computes in, family, fusion, what it is). All that is known of an
// operation but its functor (kernels/functors/op_functors.h): the kernels' tables, nd's functions with their docstrings
// and stubs, and what fuse() records come from here. bool operands of a row without bool go to int8. The text speaks
// of x, of x1 and x2, or of x1, x2 and x3.
#define DLBRIDGE_ND_UNARY_OPS(X)                                                                                       \
  X(kPositive, "positive", 1, kSame, kAllSet, kNone, kFused, "x itself, in memory of its own.")                        \
  X(kNegative, "negative", 1, kNumber, kNumericSet, kArithmetic, kFused, "-x; integers wrap around.")                  \
  X(kAbsolute, "absolute", 1, kReal, kAllSet, kArithmetic, kFused,                                                     \
    "|x|, the magnitude of complex numbers; the lowest integer of a dtype stays as it is.")                            \
  X(kFabs, "fabs", 1, kFloat, kFloatSet, kNone, kFused, "|x| as a float.")                                             \
  X(kSign, "sign", 1, kNumber, kNumericSet, kDivision, kFused,                                                         \
    "-1, 0 or 1 by the sign of x, x / |x| of complex numbers; NaN stays NaN.")                                         \
  X(kSquare, "square", 1, kSame, kNumericSet, kArithmetic, kFused, "x * x; integers wrap around.")                     \
  X(kReciprocal, "reciprocal", 1, kSame, kNumericSet, kDivision, kFused,                                               \
    "1 / x; of integers without its fraction, 0 for 0.")                                                               \
  X(kConjugate, "conjugate", 1, kSame, kNumericSet, kArithmetic, kFused,                                               \
    "The complex conjugate; real numbers stay as they are.")                                                           \
  X(kFloor, "floor", 1, kSame, kBoolSet | kRealSet, kArithmetic, kFused,                                               \
    "The largest whole number that is not above x, in the dtype of x.")                                                \
  X(kCeil, "ceil", 1, kSame, kBoolSet | kRealSet, kArithmetic, kFused,                                                 \
    "The smallest whole number that is not below x, in the dtype of x.")                                               \
  X(kTrunc, "trunc", 1, kSame, kBoolSet | kRealSet, kArithmetic, kFused, "x without its fraction, in the dtype of x.") \
  X(kRint, "rint", 1, kFloat, kInexactSet, kArithmetic, kFused,                                                        \
    "The nearest whole number, halves to even; of complex numbers part by part.")                                      \
  X(kInvert, "invert", 1, kSame, kBoolSet | kIntSet, kLogic, kFused,                                                   \
    "~x: every bit flipped; the logical not of bools.")                                                                \
  X(kBitwiseCount, "bitwise_count", 1, kCount, kIntSet, kLogic, kFused, "How many bits of |x| are 1.")                 \
  X(kSqrt, "sqrt", 1, kFloat, kInexactSet, kArithmetic, kFused, "The square root; NaN for negative real numbers.")     \
  X(kDegrees, "degrees", 1, kFloat, kFloatSet, kArithmetic, kFused, "Radians to degrees: x * 180 / pi.")               \
  X(kRadians, "radians", 1, kFloat, kFloatSet, kArithmetic, kFused, "Degrees to radians: x * pi / 180.")               \
  X(kCbrt, "cbrt", 1, kFloat, kFloatSet, kMath, kFused, "The cube root.")                                              \
  X(kRsqrt, "rsqrt", 1, kFloat, kFloatSet, kMath, kFused, "1 / sqrt(x).")                                              \
  X(kExp, "exp", 1, kFloat, kInexactSet, kMath, kFused, "e**x.")                                                       \
  X(kExp2, "exp2", 1, kFloat, kInexactSet, kMath, kFused, "2**x.")                                                     \
  X(kExpm1, "expm1", 1, kFloat, kInexactSet, kMath, kFused, "e**x - 1, accurate also near 0.")                         \
  X(kLog, "log", 1, kFloat, kInexactSet, kMath, kFused,                                                                \
    "The natural logarithm; -inf for 0, NaN for negative real numbers.")                                               \
  X(kLog2, "log2", 1, kFloat, kInexactSet, kMath, kFused,                                                              \
    "The logarithm to base 2; -inf for 0, NaN for negative real numbers.")                                             \
  X(kLog10, "log10", 1, kFloat, kInexactSet, kMath, kFused,                                                            \
    "The logarithm to base 10; -inf for 0, NaN for negative real numbers.")                                            \
  X(kLog1p, "log1p", 1, kFloat, kInexactSet, kMath, kFused, "log(1 + x), accurate also near 0.")                       \
  X(kSin, "sin", 1, kFloat, kInexactSet, kTrigonometric, kFused, "The sine of x in radians.")                          \
  X(kCos, "cos", 1, kFloat, kInexactSet, kTrigonometric, kFused, "The cosine of x in radians.")                        \
  X(kTan, "tan", 1, kFloat, kInexactSet, kTrigonometric, kFused, "The tangent of x in radians.")                       \
  X(kSinc, "sinc", 1, kTrueDivide, kInexactSet, kTrigonometric, kFused, "sin(pi x) / (pi x), 1 at 0.")                 \
  X(kArcsin, "arcsin", 1, kFloat, kInexactSet, kTrigonometric, kFusedReal,                                             \
    "The angle in radians whose sine is x, from -pi/2 to pi/2; NaN for real numbers beyond -1 and 1.")                 \
  X(kArccos, "arccos", 1, kFloat, kInexactSet, kTrigonometric, kFusedReal,                                             \
    "The angle in radians whose cosine is x, from 0 to pi; NaN for real numbers beyond -1 and 1.")                     \
  X(kArctan, "arctan", 1, kFloat, kInexactSet, kTrigonometric, kFusedReal,                                             \
    "The angle in radians whose tangent is x, from -pi/2 to pi/2.")                                                    \
  X(kSinh, "sinh", 1, kFloat, kInexactSet, kTrigonometric, kFused, "(e**x - e**-x) / 2.")                              \
  X(kCosh, "cosh", 1, kFloat, kInexactSet, kTrigonometric, kFused, "(e**x + e**-x) / 2.")                              \
  X(kTanh, "tanh", 1, kFloat, kInexactSet, kTrigonometric, kFused, "sinh(x) / cosh(x).")                               \
  X(kArcsinh, "arcsinh", 1, kFloat, kInexactSet, kTrigonometric, kFusedReal, "The number whose sinh is x.")            \
  X(kArccosh, "arccosh", 1, kFloat, kInexactSet, kTrigonometric, kFusedReal,                                           \
    "The number from 0 on whose cosh is x; NaN for real numbers below 1.")                                             \
  X(kArctanh, "arctanh", 1, kFloat, kInexactSet, kTrigonometric, kFusedReal,                                           \
    "The number whose tanh is x; NaN for real numbers beyond -1 and 1.")                                               \
  X(kExpit, "expit", 1, kFloat, kFloatSet, kMath, kFused, "The logistic function (sigmoid): 1 / (1 + e**-x).")         \
  X(kErf, "erf", 1, kFloat, kFloatSet, kMath, kFused,                                                                  \
    "The error function: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.")                                  \
  X(kLogicalNot, "logical_not", 1, kCompare, kAllSet, kLogic, kFused, "not x: whether x is 0.")                        \
  X(kIsNan, "isnan", 1, kCompare, kAllSet, kLogic, kFused, "Whether x is NaN, a complex number in either part.")       \
  X(kIsInf, "isinf", 1, kCompare, kAllSet, kLogic, kFused, "Whether x is infinite, a complex number in either part.")  \
  X(kIsFinite, "isfinite", 1, kCompare, kAllSet, kLogic, kFused,                                                       \
    "Whether x is neither infinite nor NaN, a complex number in both parts.")                                          \
  X(kSignbit, "signbit", 1, kCompare, kRealSet, kLogic, kFused, "Whether the sign of x is minus, as that of -0.0 is.")

#define DLBRIDGE_ND_BINARY_OPS(X)                                                                                     \
  X(kAdd, "add", 2, kSame, kAllSet, kArithmetic, kFused, "x1 + x2; integers wrap around, bools are joined by or.")    \
  X(kSubtract, "subtract", 2, kNumber, kNumericSet, kArithmetic, kFused, "x1 - x2; integers wrap around.")            \
  X(kMultiply, "multiply", 2, kSame, kAllSet, kArithmetic, kFused,                                                    \
    "x1 * x2; integers wrap around, bools are joined by and.")                                                        \
  X(kDivide, "divide", 2, kTrueDivide, kInexactSet, kArithmetic, kFused, "x1 / x2.")                                  \
  X(kFloorDivide, "floor_divide", 2, kSame, kRealSet, kDivision, kFused,                                              \
    "x1 // x2: the quotient rounded down; of integers 0 where x2 is 0.")                                              \
  X(kRemainder, "remainder", 2, kSame, kRealSet, kDivision, kFused,                                                   \
    "x1 - x1 // x2 * x2, which has the sign of x2; of integers 0 where x2 is 0.")                                     \
  X(kFmod, "fmod", 2, kSame, kRealSet, kDivision, kFused,                                                             \
    "The remainder of x1 / x2 with the sign of x1; of integers 0 where x2 is 0.")                                     \
  X(kPower, "power", 2, kSame, kNumericSet, kDivision, kFused,                                                        \
    "x1**x2; integers wrap around, an element to a negative power is the whole part; a negative scalar is refused.")  \
  X(kMaximum, "maximum", 2, kSame, kAllSet, kExtrema, kFused, "The larger of x1 and x2; NaN where either is.")        \
  X(kMinimum, "minimum", 2, kSame, kAllSet, kExtrema, kFused, "The smaller of x1 and x2; NaN where either is.")       \
  X(kFmax, "fmax", 2, kSame, kAllSet, kExtrema, kFused, "The larger of x1 and x2; the other one where one is NaN.")   \
  X(kFmin, "fmin", 2, kSame, kAllSet, kExtrema, kFused, "The smaller of x1 and x2; the other one where one is NaN.")  \
  X(kEqual, "equal", 2, kCompare, kAllSet, kLogic, kFused, "x1 == x2.")                                               \
  X(kNotEqual, "not_equal", 2, kCompare, kAllSet, kLogic, kFused, "x1 != x2.")                                        \
  X(kLess, "less", 2, kCompare, kAllSet, kLogic, kFused,                                                              \
    "x1 < x2; complex numbers by their real parts, then by their imaginary ones.")                                    \
  X(kLessEqual, "less_equal", 2, kCompare, kAllSet, kLogic, kFused,                                                   \
    "x1 <= x2; complex numbers by their real parts, then by their imaginary ones.")                                   \
  X(kLogicalAnd, "logical_and", 2, kCompare, kAllSet, kLogic, kFused, "x1 and x2: whether neither is 0.")             \
  X(kLogicalOr, "logical_or", 2, kCompare, kAllSet, kLogic, kFused, "x1 or x2: whether one is not 0.")                \
  X(kLogicalXor, "logical_xor", 2, kCompare, kAllSet, kLogic, kFused,                                                 \
    "Whether one of x1 and x2 is 0 and the other is not.")                                                            \
  X(kBitwiseAnd, "bitwise_and", 2, kSame, kBoolSet | kIntSet, kLogic, kFused, "x1 & x2: the bits that both have.")    \
  X(kBitwiseOr, "bitwise_or", 2, kSame, kBoolSet | kIntSet, kLogic, kFused, "x1 | x2: the bits that either has.")     \
  X(kBitwiseXor, "bitwise_xor", 2, kSame, kBoolSet | kIntSet, kLogic, kFused,                                         \
    "x1 ^ x2: the bits that one of them has.")                                                                        \
  X(kLeftShift, "left_shift", 2, kSame, kIntSet, kLogic, kFused,                                                      \
    "x1 << x2: x1 * 2**x2 with what the dtype cannot hold cut off; 0 where x2 is negative or the width or more.")     \
  X(kRightShift, "right_shift", 2, kSame, kIntSet, kLogic, kFused,                                                    \
    "x1 >> x2: x1 // 2**x2; 0, or -1 for negative x1, where x2 is negative or the width or more.")                    \
  X(kGcd, "gcd", 2, kSame, kIntSet, kDivision, kFused, "The greatest common divisor of |x1| and |x2|.")               \
  X(kLcm, "lcm", 2, kSame, kIntSet, kDivision, kFused,                                                                \
    "The least common multiple of |x1| and |x2|, 0 where one is 0; what the dtype cannot hold wraps around.")         \
  X(kArctan2, "arctan2", 2, kFloat, kFloatSet, kMath, kFused,                                                         \
    "The angle of the point (x2, x1) in radians, from -pi to pi.")                                                    \
  X(kHypot, "hypot", 2, kFloat, kFloatSet, kMath, kFused, "sqrt(x1**2 + x2**2), without overflow on the way.")        \
  X(kCopysign, "copysign", 2, kFloat, kFloatSet, kMath, kFused, "|x1| with the sign of x2.")                          \
  X(kNextafter, "nextafter", 2, kFloat, kFloatSet, kMath, kFused,                                                     \
    "The number of the dtype that is next to x1 towards x2.")                                                         \
  X(kLogaddexp, "logaddexp", 2, kFloat, kFloatSet, kMath, kFused, "log(e**x1 + e**x2), without overflow on the way.") \
  X(kLogaddexp2, "logaddexp2", 2, kFloat, kFloatSet, kMath, kFused,                                                   \
    "log2(2**x1 + 2**x2), without overflow on the way.")                                                              \
  X(kHeaviside, "heaviside", 2, kFloat, kFloatSet, kMath, kFused,                                                     \
    "0 where x1 < 0, x2 where it is 0, 1 where it is above.")

#define DLBRIDGE_ND_TERNARY_OPS(X)                                                              \
  X(kWhere, "where", 3, kSame, kAllSet, kExtrema, kFused, "x2 where x1 is true, x3 elsewhere.") \
  X(kClip, "clip", 3, kSame, kBoolSet | kRealSet, kExtrema, kFused,                             \
    "x1, but x2 where it is below and x3 where it is above that; NaN where any of them is.")

// Further functions: X(name, enumerator, what it is), a row with its two operands exchanged.
#define DLBRIDGE_ND_SWAPPED_OPS(X)                                                                   \
  X("greater", kLess, "x1 > x2; complex numbers by their real parts, then by their imaginary ones.") \
  X("greater_equal", kLessEqual, "x1 >= x2; complex numbers by their real parts, then by their imaginary ones.")

// X(name, enumerator): other names of a row, of NumPy and of the Array API.
#define DLBRIDGE_ND_OP_ALIASES(X)       \
  X("abs", kAbsolute)                   \
  X("acos", kArccos)                    \
  X("acosh", kArccosh)                  \
  X("asin", kArcsin)                    \
  X("asinh", kArcsinh)                  \
  X("atan", kArctan)                    \
  X("atan2", kArctan2)                  \
  X("atanh", kArctanh)                  \
  X("bitwise_invert", kInvert)          \
  X("bitwise_left_shift", kLeftShift)   \
  X("bitwise_not", kInvert)             \
  X("bitwise_right_shift", kRightShift) \
  X("conj", kConjugate)                 \
  X("deg2rad", kRadians)                \
  X("mod", kRemainder)                  \
  X("pow", kPower)                      \
  X("rad2deg", kDegrees)                \
  X("true_divide", kDivide)

#define DLBRIDGE_ND_OPS(X) DLBRIDGE_ND_UNARY_OPS(X) DLBRIDGE_ND_BINARY_OPS(X) DLBRIDGE_ND_TERNARY_OPS(X)

namespace dlbridge::nd {

enum class Op : unsigned char {
#define DLBRIDGE_ND_ENUMERATOR(id, ...) id,
  DLBRIDGE_ND_OPS(DLBRIDGE_ND_ENUMERATOR)
#undef DLBRIDGE_ND_ENUMERATOR
};

}  // namespace dlbridge::nd
