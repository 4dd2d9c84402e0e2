// Many pairs of operation and compute dtype are one computation: adding int32 is adding uint32, the maximum of bools is
// logical_or. canonical() names the pair whose kernel does it; kernels exist for the pairs that name themselves.
#pragma once

#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

enum class Work : std::uint8_t { kKernel, kCopy, kFalse, kTrue };  // kCopy: the cast alone; kFalse, kTrue: a constant

struct Canonical {
  Work work;
  Op op;
  DType compute;
};

constexpr DType unsigned_of(DType t) noexcept {
  switch (t) {
    case DType::kInt8: return DType::kUInt8;
    case DType::kInt16: return DType::kUInt16;
    case DType::kInt32: return DType::kUInt32;
    case DType::kInt64: return DType::kUInt64;
    default: return t;
  }
}

// The dtype that carries the same bits through a copy or a choice.
constexpr DType carrier_of(DType t) noexcept {
  switch (t) {
    case DType::kBool: return DType::kUInt8;
    case DType::kFloat16:
    case DType::kBFloat16: return DType::kUInt16;
    case DType::kFloat32: return DType::kUInt32;
    case DType::kFloat64:
    case DType::kComplex64: return DType::kUInt64;
    default: return unsigned_of(t);
  }
}

// Casts that give the same bits share a loop or kernel: a float gives a signed and an unsigned integer of 8 or 16 bits
// the same (types.h), an integer does to any that is not wider, and what is true has no sign.
constexpr DType cast_target(DType from, DType to) noexcept {
  const bool narrow = to == DType::kInt8 || to == DType::kInt16;
  return narrow || !contains(kInexactSet, from) ? unsigned_of(to) : to;
}
constexpr DType cast_source(DType from, DType to) noexcept {
  if (from == DType::kBool) return from;  // any byte that is not 0 is 1
  const bool keeps_or_narrows = contains(kIntSet, to) && info(to).itemsize <= info(from).itemsize;
  return keeps_or_narrows || to == DType::kBool ? unsigned_of(from) : from;
}
// Whether the bits of `from` are the bits of `to`.
constexpr bool is_same_bits(DType from, DType to) noexcept {
  return from == to || (contains(kIntSet, from) && unsigned_of(from) == unsigned_of(to));
}
// The same for a result that a kernel has made: its bools are 0 and 1.
constexpr bool is_same_result_bits(DType from, DType to) noexcept {
  return is_same_bits(from, to) || (from == DType::kBool && unsigned_of(to) == DType::kUInt8);
}

namespace detail {
constexpr Canonical canonical_bool(Op op) noexcept {
  constexpr DType kBool = DType::kBool;
  switch (op) {
    case Op::kAdd:
    case Op::kMaximum:
    case Op::kFmax:
    case Op::kBitwiseOr: return {Work::kKernel, Op::kLogicalOr, kBool};
    case Op::kMultiply:
    case Op::kMinimum:
    case Op::kFmin:
    case Op::kBitwiseAnd: return {Work::kKernel, Op::kLogicalAnd, kBool};
    case Op::kNotEqual:
    case Op::kBitwiseXor: return {Work::kKernel, Op::kLogicalXor, kBool};
    case Op::kInvert: return {Work::kKernel, Op::kLogicalNot, kBool};
    case Op::kAbsolute:
    case Op::kConjugate: return {Work::kCopy, Op::kPositive, kBool};
    default: return {Work::kKernel, op, kBool};
  }
}

// Operations on integers for which the sign does not matter, but to a cast of the result.
constexpr bool ignores_sign(Op op) noexcept {
  switch (op) {
    case Op::kNegative:
    case Op::kSquare:
    case Op::kInvert:
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kBitwiseAnd:
    case Op::kBitwiseOr:
    case Op::kBitwiseXor:
    case Op::kLeftShift:
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLogicalNot:
    case Op::kLogicalAnd:
    case Op::kLogicalOr:
    case Op::kLogicalXor: return true;
    default: return false;
  }
}

constexpr Canonical canonical_integer(Op op, DType compute) noexcept {
  const bool is_unsigned = contains(kUnsignedSet, compute);
  switch (op) {
    case Op::kFmax: return {Work::kKernel, Op::kMaximum, compute};
    case Op::kFmin: return {Work::kKernel, Op::kMinimum, compute};
    case Op::kAbsolute:
      if (is_unsigned) return {Work::kCopy, Op::kPositive, compute};
      break;
    case Op::kSignbit:
      if (is_unsigned) return {Work::kFalse, op, compute};
      break;
    default: break;
  }
  return {Work::kKernel, op, ignores_sign(op) ? unsigned_of(compute) : compute};
}
}  // namespace detail

constexpr Canonical canonical(Op op, DType compute) noexcept {
  const bool exact = !contains(kInexactSet, compute);
  switch (op) {
    case Op::kPositive: return {Work::kCopy, op, compute};
    case Op::kFabs: return {Work::kKernel, Op::kAbsolute, compute};
    case Op::kConjugate:
      if (!contains(kComplexSet, compute)) return {Work::kCopy, Op::kPositive, compute};
      break;
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
      if (exact) return {Work::kCopy, Op::kPositive, compute};
      break;
    case Op::kIsNan:
    case Op::kIsInf:
      if (exact) return {Work::kFalse, op, compute};
      break;
    case Op::kIsFinite:
      if (exact) return {Work::kTrue, op, compute};
      break;
    default: break;
  }
  if (compute == DType::kBool) return detail::canonical_bool(op);
  return exact ? detail::canonical_integer(op, compute) : Canonical{Work::kKernel, op, compute};
}

// The compute dtypes for which an operation has kernels of its own.
constexpr DTypeSet kernel_dtypes(Op op) noexcept {
  DTypeSet set = 0;
  for (unsigned d = 0; d < 32; ++d) {
    const DTypeSet one = DTypeSet{1} << d;
    if ((info(op).dtypes & one) == 0) continue;
    const Canonical c = canonical(op, static_cast<DType>(d));
    if (c.work == Work::kKernel && c.op == op && c.compute == static_cast<DType>(d)) set |= one;
  }
  return set;
}

constexpr int kernel_count() noexcept {
  int count = 0;
  for (std::size_t op = 0; op < kOps.size(); ++op)
    for (DTypeSet rest = kernel_dtypes(static_cast<Op>(op)); rest != 0; rest &= rest - 1) ++count;
  return count;
}

// Every pair that the front end may ask for leads to a kernel, a copy or a constant.
consteval bool canonical_is_closed() {
  for (std::size_t i = 0; i < kOps.size(); ++i)
    for (unsigned d = 0; d < 32; ++d) {
      if (!contains(kOps[i].dtypes, static_cast<DType>(d))) continue;
      const Canonical c = canonical(static_cast<Op>(i), static_cast<DType>(d));
      if (c.work == Work::kKernel && !contains(kernel_dtypes(c.op), c.compute)) return false;
    }
  return true;
}
static_assert(canonical_is_closed());

}  // namespace dlbridge::nd
