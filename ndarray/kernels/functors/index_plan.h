// What gather and scatter on host and device share: a loop made small, and what combines values.
#pragma once

#include <cstdint>

#include "dlbridge/dims.h"
#include "ndarray/kernels/api.h"
#include "ndarray/kernels/functors/arithmetic.h"
#include "ndarray/kernels/functors/canonical.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

// The dims merged; at least one is left.
inline void compact_loop(IndexArgs& args) noexcept {
  std::int64_t* rows[2 + kMaxIndexArrays];
  rows[0] = args.value_strides;
  rows[1] = args.base_strides;
  for (int k = 0; k < args.arrays; ++k) rows[2 + k] = args.index_strides[k];
  args.ndim = merge_dims(args.shape, args.ndim, rows, 2 + args.arrays);
  if (args.ndim != 0) return;
  args.ndim = 1;
  args.shape[0] = 1;
  for (int k = 0; k < 2 + args.arrays; ++k) rows[k][0] = 0;
}

// True for a dim along which some index moves; a dim that moves nothing in the base either counts as one: its elements
// meet at the same place.
inline bool is_index_dim(const IndexArgs& args, int dim) noexcept {
  if (args.base_strides[dim] == 0) return true;
  for (int k = 0; k < args.arrays; ++k)
    if (args.index_strides[k][dim] != 0) return true;
  return false;
}

// What no bounds refuse: the host has refused all that clamping would change.
DLBRIDGE_ND_HD inline std::int64_t resolve_index(std::int64_t i, std::int64_t extent, Bounds bounds) noexcept {
  if (bounds == Bounds::kWrap && (i < 0 || i >= extent)) i %= extent;
  if (bounds != Bounds::kClip && i < 0) i += extent;
  if (i < 0) return 0;
  return i < extent ? i : extent - 1;
}

// What stands at a place after a combining scatter has come to it with `b`, in the type that values of T are computed
// with; bools are added by `or`.
template <Op op, class T>
DLBRIDGE_ND_HD inline arith_t<T> combined(arith_t<T> a, arith_t<T> b) noexcept {
  if constexpr (op == Op::kMaximum) return fn::maximum(a, b);
  else if constexpr (op == Op::kMinimum) return fn::minimum(a, b);
  else if constexpr (op == Op::kMultiply && std::is_same_v<T, bool>) return a && b;
  else if constexpr (op == Op::kMultiply) return fn::multiply(a, b);
  else if constexpr (std::is_same_v<T, bool>) return a || b;
  else return static_cast<arith_t<T>>(a + b);
}

// Calls f.template operator()<op, T>() for an operation that can combine, with a type of `Set` that does it as `dtype`:
// signed and unsigned integers are added alike.
template <DTypeSet Set, class F>
int visit_combined(Op op, DType dtype, F&& f) {
  const auto visit = [&]<Op kOp, DTypeSet kSet>(DType as) {
    return visit_dtype<kSet>(as, [&]<class T>() { return f.template operator()<kOp, T>(); }, kErrorUnsupported);
  };
  switch (op) {
    case Op::kAdd: return visit.template operator()<Op::kAdd, Set & ~kSignedSet>(unsigned_of(dtype));
    case Op::kMaximum: return visit.template operator()<Op::kMaximum, Set>(dtype);
    case Op::kMinimum: return visit.template operator()<Op::kMinimum, Set>(dtype);
    default: return kErrorUnsupported;
  }
}

}  // namespace dlbridge::nd
