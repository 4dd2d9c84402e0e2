// The operations by the translation unit that instantiates them, in the order in which they are looked up.
#pragma once

#include <utility>

#include "ndarray/kernels/functors/canonical.h"

namespace dlbridge::nd {

template <Op... ops>
struct OpGroup {
  static constexpr bool has(Op op) noexcept { return ((op == ops) || ...); }
  static constexpr std::size_t size = sizeof...(ops);
};

using ArithmeticOps = OpGroup<Op::kNegative, Op::kAbsolute, Op::kSquare, Op::kConjugate, Op::kFloor, Op::kCeil,
                              Op::kTrunc, Op::kRint, Op::kSqrt, Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide>;
using ExtremaOps = OpGroup<Op::kMaximum, Op::kMinimum, Op::kFmax, Op::kFmin, Op::kClip, Op::kWhere>;
using DivisionOps = OpGroup<Op::kSign, Op::kReciprocal, Op::kFloorDivide, Op::kRemainder, Op::kFmod, Op::kPower,
                            Op::kGcd>;
using LogicOps = OpGroup<Op::kInvert, Op::kLogicalNot, Op::kIsNan, Op::kIsInf, Op::kIsFinite, Op::kSignbit,
                         Op::kEqual, Op::kNotEqual, Op::kLess, Op::kLessEqual, Op::kLogicalAnd, Op::kLogicalOr,
                         Op::kLogicalXor, Op::kBitwiseAnd, Op::kBitwiseOr, Op::kBitwiseXor, Op::kLeftShift,
                         Op::kRightShift>;
using MathOps = OpGroup<Op::kCbrt, Op::kRsqrt, Op::kExp, Op::kExp2, Op::kExpm1, Op::kLog, Op::kLog2, Op::kLog10,
                        Op::kLog1p, Op::kErf, Op::kArctan2, Op::kHypot, Op::kCopysign, Op::kNextafter,
                        Op::kLogaddexp, Op::kHeaviside>;
using TrigonometricOps = OpGroup<Op::kSin, Op::kCos, Op::kTan, Op::kArcsin, Op::kArccos, Op::kArctan, Op::kSinh,
                                 Op::kCosh, Op::kTanh, Op::kArcsinh, Op::kArccosh, Op::kArctanh>;

template <Op op>
inline constexpr int group_count_v = ArithmeticOps::has(op) + ExtremaOps::has(op) + DivisionOps::has(op) +
                                     LogicOps::has(op) + MathOps::has(op) + TrigonometricOps::has(op);
#define DLBRIDGE_ND_CHECK(id, name, operands, rule, dtypes) \
  static_assert(group_count_v<Op::id> == (kernel_dtypes(Op::id) != 0), name);
DLBRIDGE_ND_OPS(DLBRIDGE_ND_CHECK)
#undef DLBRIDGE_ND_CHECK

inline constexpr std::size_t kDTypeSlots = 16;  // the ndarray's dtypes are the first of the table
static_assert(kAllSet < DTypeSet{1} << kDTypeSlots);

// A table with one row of E an operation of a group, one column a compute dtype. Make::entry<op, dtype>() makes those
// for which there are kernels; the others stay E{}.
template <class E, class Group, class Make>
class OpTable;
template <class E, class Make, Op... ops>
class OpTable<E, OpGroup<ops...>, Make> {
 public:
  constexpr OpTable() : rows_{make_row<ops>(std::make_index_sequence<kDTypeSlots>{})...} {}

  // Null where the group has not the operation.
  const E* find(Op op, DType compute) const noexcept {
    for (const Row& row : rows_)
      if (row.op == op) return &row.entries[static_cast<std::size_t>(compute)];
    return nullptr;
  }

 private:
  struct Row {
    Op op;
    E entries[kDTypeSlots];
  };

  template <Op op, DType compute>
  static constexpr E make_entry() {
    if constexpr (contains(kernel_dtypes(op), compute))
      return Make::template entry<op, compute>();
    else
      return E{};
  }
  template <Op op, std::size_t... d>
  static constexpr Row make_row(std::index_sequence<d...>) {
    return {op, {make_entry<op, static_cast<DType>(d)>()...}};
  }

  Row rows_[sizeof...(ops)];
};

}  // namespace dlbridge::nd
