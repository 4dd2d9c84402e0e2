// The operations by the translation unit that instantiates them, in the order in which they are looked up.
#pragma once

#include <algorithm>
#include <utility>

#include "ndarray/kernels/functors/canonical.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

// What an operation that computes in C stores, before the cast to the output's dtype.
template <Op op, class C>
using op_result_t =
    std::conditional_t<info(op).rule == TypeRule::kCompare, bool,
                       std::conditional_t<info(op).rule == TypeRule::kCount, std::uint8_t,
                                          std::conditional_t<info(op).rule == TypeRule::kReal, real_t<C>, C>>>;

template <Op... ops>
struct OpGroup {
  static constexpr bool has(Op op) noexcept { return ((op == ops) || ...); }
  static constexpr std::size_t size = sizeof...(ops);
};

namespace detail {
template <Family family>
consteval std::size_t family_size() {
  return static_cast<std::size_t>(std::ranges::count(kOps, family, &OpInfo::family));
}
template <Family family>
consteval Op family_member(std::size_t number) {
  std::size_t row = 0;
  while (kOps[row].family != family || number-- != 0) ++row;
  return static_cast<Op>(row);
}
template <Family family, std::size_t... k>
OpGroup<family_member<family>(k)...> make_group(std::index_sequence<k...>);
}  // namespace detail

template <Family family>
using OpsOf = decltype(detail::make_group<family>(std::make_index_sequence<detail::family_size<family>()>{}));

using ArithmeticOps = OpsOf<Family::kArithmetic>;
using ExtremaOps = OpsOf<Family::kExtrema>;
using DivisionOps = OpsOf<Family::kDivision>;
using LogicOps = OpsOf<Family::kLogic>;
using MathOps = OpsOf<Family::kMath>;
using TrigonometricOps = OpsOf<Family::kTrigonometric>;

#define DLBRIDGE_ND_CHECK(id, name, ...) \
  static_assert((info(Op::id).family != Family::kNone) == (kernel_dtypes(Op::id) != 0), name);
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

  // Null where the group does not have the operation.
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
    if constexpr (contains(kernel_dtypes(op), compute)) return Make::template entry<op, compute>();
    else return E{};
  }
  template <Op op, std::size_t... d>
  static constexpr Row make_row(std::index_sequence<d...>) {
    return {op, {make_entry<op, static_cast<DType>(d)>()...}};
  }

  Row rows_[sizeof...(ops)];
};

}  // namespace dlbridge::nd
