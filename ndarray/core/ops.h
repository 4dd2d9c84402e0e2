// The elementwise operations, in one table: what the front end resolves and the kernels implement derive from it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dlbridge/dtype.h"

namespace dlbridge::nd {

// Sets of dtypes, one bit a DType.
using DTypeSet = std::uint32_t;
constexpr DTypeSet bit(DType t) noexcept { return DTypeSet{1} << static_cast<unsigned>(t); }
constexpr bool contains(DTypeSet set, DType t) noexcept { return (set & bit(t)) != 0; }

inline constexpr DTypeSet kBoolSet = bit(DType::kBool);
inline constexpr DTypeSet kSignedSet =
    bit(DType::kInt8) | bit(DType::kInt16) | bit(DType::kInt32) | bit(DType::kInt64);
inline constexpr DTypeSet kUnsignedSet =
    bit(DType::kUInt8) | bit(DType::kUInt16) | bit(DType::kUInt32) | bit(DType::kUInt64);
inline constexpr DTypeSet kIntSet = kSignedSet | kUnsignedSet;
inline constexpr DTypeSet kFloatSet =
    bit(DType::kFloat16) | bit(DType::kBFloat16) | bit(DType::kFloat32) | bit(DType::kFloat64);
inline constexpr DTypeSet kComplexSet = bit(DType::kComplex64) | bit(DType::kComplex128);
inline constexpr DTypeSet kRealSet = kIntSet | kFloatSet;
inline constexpr DTypeSet kNumericSet = kRealSet | kComplexSet;
inline constexpr DTypeSet kAllSet = kBoolSet | kNumericSet;  // every dtype that the ndarray has
inline constexpr DTypeSet kInexactSet = kFloatSet | kComplexSet;

// How the dtype that an operation computes in follows from the promoted dtype of its operands, and its result's dtype.
enum class TypeRule : std::uint8_t {
  kSame,       // computes and returns the promoted dtype
  kFloat,      // integers go to the float that NumPy takes (int8 float16, int16 float32, others float64)
  kTrueDivide, // integers and bool go to float64
  kCompare,    // returns bool
  kReal,       // complex returns the real dtype of its parts (absolute)
};

// X(enumerator, name, operands, rule, dtypes it computes in). bool operands of a row without bool go to int8.
#define DLBRIDGE_ND_UNARY_OPS(X)                                        \
  X(kPositive, "positive", 1, kSame, kAllSet)                           \
  X(kNegative, "negative", 1, kSame, kNumericSet)                       \
  X(kAbsolute, "absolute", 1, kReal, kAllSet)                           \
  X(kSign, "sign", 1, kSame, kNumericSet)                               \
  X(kSquare, "square", 1, kSame, kNumericSet)                           \
  X(kReciprocal, "reciprocal", 1, kSame, kNumericSet)                   \
  X(kConjugate, "conjugate", 1, kSame, kNumericSet)                     \
  X(kFloor, "floor", 1, kSame, kBoolSet | kRealSet)                     \
  X(kCeil, "ceil", 1, kSame, kBoolSet | kRealSet)                       \
  X(kTrunc, "trunc", 1, kSame, kBoolSet | kRealSet)                     \
  X(kRint, "rint", 1, kFloat, kInexactSet)                              \
  X(kInvert, "invert", 1, kSame, kBoolSet | kIntSet)                    \
  X(kSqrt, "sqrt", 1, kFloat, kInexactSet)                              \
  X(kCbrt, "cbrt", 1, kFloat, kFloatSet)                                \
  X(kRsqrt, "rsqrt", 1, kFloat, kFloatSet)                              \
  X(kExp, "exp", 1, kFloat, kInexactSet)                                \
  X(kExp2, "exp2", 1, kFloat, kFloatSet)                                \
  X(kExpm1, "expm1", 1, kFloat, kInexactSet)                            \
  X(kLog, "log", 1, kFloat, kInexactSet)                                \
  X(kLog2, "log2", 1, kFloat, kInexactSet)                              \
  X(kLog10, "log10", 1, kFloat, kInexactSet)                            \
  X(kLog1p, "log1p", 1, kFloat, kInexactSet)                            \
  X(kSin, "sin", 1, kFloat, kInexactSet)                                \
  X(kCos, "cos", 1, kFloat, kInexactSet)                                \
  X(kTan, "tan", 1, kFloat, kInexactSet)                                \
  X(kArcsin, "arcsin", 1, kFloat, kInexactSet)                          \
  X(kArccos, "arccos", 1, kFloat, kInexactSet)                          \
  X(kArctan, "arctan", 1, kFloat, kInexactSet)                          \
  X(kSinh, "sinh", 1, kFloat, kInexactSet)                              \
  X(kCosh, "cosh", 1, kFloat, kInexactSet)                              \
  X(kTanh, "tanh", 1, kFloat, kInexactSet)                              \
  X(kArcsinh, "arcsinh", 1, kFloat, kInexactSet)                        \
  X(kArccosh, "arccosh", 1, kFloat, kInexactSet)                        \
  X(kArctanh, "arctanh", 1, kFloat, kInexactSet)                        \
  X(kErf, "erf", 1, kFloat, kFloatSet)                                  \
  X(kLogicalNot, "logical_not", 1, kCompare, kAllSet)                   \
  X(kIsNan, "isnan", 1, kCompare, kAllSet)                              \
  X(kIsInf, "isinf", 1, kCompare, kAllSet)                              \
  X(kIsFinite, "isfinite", 1, kCompare, kAllSet)                        \
  X(kSignbit, "signbit", 1, kCompare, kRealSet)

// greater and greater_equal are less and less_equal with the operands exchanged: the front end does that.
#define DLBRIDGE_ND_BINARY_OPS(X)                                       \
  X(kAdd, "add", 2, kSame, kAllSet)                                     \
  X(kSubtract, "subtract", 2, kSame, kNumericSet)                       \
  X(kMultiply, "multiply", 2, kSame, kAllSet)                           \
  X(kDivide, "divide", 2, kTrueDivide, kInexactSet)                     \
  X(kFloorDivide, "floor_divide", 2, kSame, kRealSet)                   \
  X(kRemainder, "remainder", 2, kSame, kRealSet)                        \
  X(kFmod, "fmod", 2, kSame, kRealSet)                                  \
  X(kPower, "power", 2, kSame, kNumericSet)                             \
  X(kMaximum, "maximum", 2, kSame, kAllSet)                             \
  X(kMinimum, "minimum", 2, kSame, kAllSet)                             \
  X(kFmax, "fmax", 2, kSame, kAllSet)                                   \
  X(kFmin, "fmin", 2, kSame, kAllSet)                                   \
  X(kEqual, "equal", 2, kCompare, kAllSet)                              \
  X(kNotEqual, "not_equal", 2, kCompare, kAllSet)                       \
  X(kLess, "less", 2, kCompare, kAllSet)                                \
  X(kLessEqual, "less_equal", 2, kCompare, kAllSet)                     \
  X(kLogicalAnd, "logical_and", 2, kCompare, kAllSet)                   \
  X(kLogicalOr, "logical_or", 2, kCompare, kAllSet)                     \
  X(kLogicalXor, "logical_xor", 2, kCompare, kAllSet)                   \
  X(kBitwiseAnd, "bitwise_and", 2, kSame, kBoolSet | kIntSet)           \
  X(kBitwiseOr, "bitwise_or", 2, kSame, kBoolSet | kIntSet)             \
  X(kBitwiseXor, "bitwise_xor", 2, kSame, kBoolSet | kIntSet)           \
  X(kLeftShift, "left_shift", 2, kSame, kIntSet)                        \
  X(kRightShift, "right_shift", 2, kSame, kIntSet)                      \
  X(kGcd, "gcd", 2, kSame, kIntSet)                                     \
  X(kArctan2, "arctan2", 2, kFloat, kFloatSet)                          \
  X(kHypot, "hypot", 2, kFloat, kFloatSet)                              \
  X(kCopysign, "copysign", 2, kFloat, kFloatSet)                        \
  X(kNextafter, "nextafter", 2, kFloat, kFloatSet)                      \
  X(kLogaddexp, "logaddexp", 2, kFloat, kFloatSet)                      \
  X(kHeaviside, "heaviside", 2, kFloat, kFloatSet)

// where(bool condition, a, b); clip(a, low, high): NaN in any operand gives NaN.
#define DLBRIDGE_ND_TERNARY_OPS(X)                                      \
  X(kWhere, "where", 3, kSame, kAllSet)                                 \
  X(kClip, "clip", 3, kSame, kBoolSet | kRealSet)

#define DLBRIDGE_ND_OPS(X) DLBRIDGE_ND_UNARY_OPS(X) DLBRIDGE_ND_BINARY_OPS(X) DLBRIDGE_ND_TERNARY_OPS(X)

enum class Op : std::uint8_t {
#define DLBRIDGE_ND_ENUMERATOR(id, name, operands, rule, dtypes) id,
  DLBRIDGE_ND_OPS(DLBRIDGE_ND_ENUMERATOR)
#undef DLBRIDGE_ND_ENUMERATOR
};

struct OpInfo {
  std::string_view name;
  int operands;
  TypeRule rule;
  DTypeSet dtypes;  // of the computation
};

inline constexpr std::array kOps{
#define DLBRIDGE_ND_ROW(id, name, operands, rule, dtypes) OpInfo{name, operands, TypeRule::rule, dtypes},
    DLBRIDGE_ND_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
};
constexpr const OpInfo& info(Op op) noexcept { return kOps[static_cast<std::size_t>(op)]; }

// --- reductions -----------------------------------------------------------------------------------------------------

// X(enumerator, name, dtypes that are read). Sums and products of integers and bool accumulate in 64 bits, of 16-bit
// floats in float32; max and min propagate NaN; the arg reductions return the first position, NaN first of all.
#define DLBRIDGE_ND_REDUCE_OPS(X)                   \
  X(kSum, "sum", kAllSet)                           \
  X(kProd, "prod", kAllSet)                         \
  X(kMax, "max", kAllSet)                           \
  X(kMin, "min", kAllSet)                           \
  X(kAny, "any", kAllSet)                           \
  X(kAll, "all", kAllSet)                           \
  X(kCountNonzero, "count_nonzero", kAllSet)        \
  X(kMean, "mean", kInexactSet)                     \
  X(kVar, "var", kInexactSet)                       \
  X(kStd, "std", kInexactSet)                       \
  X(kNorm1, "norm1", kInexactSet)                   \
  X(kNorm2, "norm2", kInexactSet)                   \
  X(kNormInf, "norm_inf", kInexactSet)              \
  X(kNormMinusInf, "norm_minus_inf", kInexactSet)   \
  X(kArgmax, "argmax", kAllSet)                     \
  X(kArgmin, "argmin", kAllSet)

enum class ReduceOp : std::uint8_t {
#define DLBRIDGE_ND_ENUMERATOR(id, name, dtypes) id,
  DLBRIDGE_ND_REDUCE_OPS(DLBRIDGE_ND_ENUMERATOR)
#undef DLBRIDGE_ND_ENUMERATOR
};

struct ReduceOpInfo {
  std::string_view name;
  DTypeSet dtypes;
};
inline constexpr std::array kReduceOps{
#define DLBRIDGE_ND_ROW(id, name, dtypes) ReduceOpInfo{name, dtypes},
    DLBRIDGE_ND_REDUCE_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
};
constexpr const ReduceOpInfo& info(ReduceOp op) noexcept { return kReduceOps[static_cast<std::size_t>(op)]; }

}  // namespace dlbridge::nd
