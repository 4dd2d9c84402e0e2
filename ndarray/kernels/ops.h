// What the front end resolves and the kernels implement of each operation: derived from its row in op_table.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dlbridge/dtype.h"
#include "ndarray/kernels/op_table.h"

namespace dlbridge::nd {

// Sets of dtypes, one bit a DType.
using DTypeSet = std::uint32_t;
constexpr DTypeSet bit(DType t) noexcept { return DTypeSet{1} << static_cast<unsigned>(t); }
constexpr bool contains(DTypeSet set, DType t) noexcept { return (set & bit(t)) != 0; }

inline constexpr DTypeSet kBoolSet = bit(DType::kBool);
inline constexpr DTypeSet kSignedSet = bit(DType::kInt8) | bit(DType::kInt16) | bit(DType::kInt32) | bit(DType::kInt64);
inline constexpr DTypeSet kUnsignedSet =
    bit(DType::kUInt8) | bit(DType::kUInt16) | bit(DType::kUInt32) | bit(DType::kUInt64);
inline constexpr DTypeSet kIntSet = kSignedSet | kUnsignedSet;
inline constexpr DTypeSet kHalfSet = bit(DType::kFloat16) | bit(DType::kBFloat16);
inline constexpr DTypeSet kFloatSet = kHalfSet | bit(DType::kFloat32) | bit(DType::kFloat64);
inline constexpr DTypeSet kComplexSet = bit(DType::kComplex64) | bit(DType::kComplex128);
inline constexpr DTypeSet kRealSet = kIntSet | kFloatSet;
inline constexpr DTypeSet kNumericSet = kRealSet | kComplexSet;
inline constexpr DTypeSet kAllSet = kBoolSet | kNumericSet;  // every dtype that the ndarray has
inline constexpr DTypeSet kInexactSet = kFloatSet | kComplexSet;

// How the dtype that an operation computes in follows from the promoted dtype of its operands, and its result's dtype.
enum class TypeRule : std::uint8_t {
  kSame,        // computes and returns the promoted dtype
  kNumber,      // the same, but bool is refused
  kFloat,       // integers go to the float that NumPy takes (int8 float16, int16 float32, others float64)
  kTrueDivide,  // integers and bool go to float64
  kCompare,     // returns bool
  kReal,        // complex returns the real dtype of its parts (absolute)
  kCount,       // returns uint8
};

constexpr DType real_part(DType t) noexcept {
  return t == DType::kComplex64 ? DType::kFloat32 : t == DType::kComplex128 ? DType::kFloat64 : t;
}
// What an operation returns that computes in this dtype.
constexpr DType result_dtype(TypeRule rule, DType compute) noexcept {
  if (rule == TypeRule::kCompare) return DType::kBool;
  if (rule == TypeRule::kCount) return DType::kUInt8;
  return rule == TypeRule::kReal ? real_part(compute) : compute;
}

// The operations that are compiled together, each family in translation units of its own. kNone: made of others.
enum class Family : std::uint8_t { kNone, kArithmetic, kExtrema, kDivision, kLogic, kMath, kTrigonometric };

// Whether the kernels of nd.fuse have the operation: they call its functor.
enum class Fusion : std::uint8_t {
  kFused,      // for all of its dtypes
  kFusedReal,  // but for the complex ones, which need more of a library than these kernels have
};

struct OpInfo {
  std::string_view name;
  int operands;
  TypeRule rule;
  DTypeSet dtypes;  // of the computation
  Family family;
  Fusion fusion;
};

inline constexpr std::array kOps{
#define DLBRIDGE_ND_ROW(id, name, operands, rule, dtypes, family, fusion, doc) \
  OpInfo{name, operands, TypeRule::rule, dtypes, Family::family, Fusion::fusion},
    DLBRIDGE_ND_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
};
constexpr const OpInfo& info(Op op) noexcept { return kOps[static_cast<std::size_t>(op)]; }

// --- reductions -----------------------------------------------------------------------------------------------------

// X(enumerator, name, dtypes that are read, docstring of nd.ndarray's method or "" where it has none). Sums and
// products of integers and bool accumulate in 64 bits, of 16-bit floats in float32; max and min propagate NaN; the arg
// reductions return the first position, NaN first of all.
#define DLBRIDGE_ND_REDUCE_OPS(X)                                                                 \
  X(kSum, "sum", kAllSet, "Sum; integers and bool in 64 bits.")                                   \
  X(kProd, "prod", kAllSet, "Product; integers and bool in 64 bits.")                             \
  X(kMax, "max", kAllSet, "Maximum; NaN where there is one.")                                     \
  X(kMin, "min", kAllSet, "Minimum; NaN where there is one.")                                     \
  X(kAny, "any", kAllSet, "Whether any element is true.")                                         \
  X(kAll, "all", kAllSet, "Whether all elements are true.")                                       \
  X(kCountNonzero, "count_nonzero", kAllSet, "")                                                  \
  X(kMean, "mean", kInexactSet, "Arithmetic mean; integers in float64.")                          \
  X(kVar, "var", kInexactSet, "Variance, divided by n - correction (ddof).")                      \
  X(kStd, "std", kInexactSet, "Standard deviation: the root of var().")                           \
  X(kNorm1, "norm1", kInexactSet, "")                                                             \
  X(kNorm2, "norm2", kInexactSet, "")                                                             \
  X(kNormInf, "norm_inf", kInexactSet, "")                                                        \
  X(kNormMinusInf, "norm_minus_inf", kInexactSet, "")                                             \
  X(kArgmax, "argmax", kAllSet, "Position of the first maximum, in C order of the reduced axes.") \
  X(kArgmin, "argmin", kAllSet, "Position of the first minimum, in C order of the reduced axes.")

enum class ReduceOp : std::uint8_t {
#define DLBRIDGE_ND_ENUMERATOR(id, name, dtypes, doc) id,
  DLBRIDGE_ND_REDUCE_OPS(DLBRIDGE_ND_ENUMERATOR)
#undef DLBRIDGE_ND_ENUMERATOR
};

struct ReduceOpInfo {
  std::string_view name;
  DTypeSet dtypes;
};
inline constexpr std::array kReduceOps{
#define DLBRIDGE_ND_ROW(id, name, dtypes, doc) ReduceOpInfo{name, dtypes},
    DLBRIDGE_ND_REDUCE_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
};
constexpr const ReduceOpInfo& info(ReduceOp op) noexcept { return kReduceOps[static_cast<std::size_t>(op)]; }

}  // namespace dlbridge::nd
