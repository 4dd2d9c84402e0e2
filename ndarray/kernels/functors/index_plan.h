// What gather and scatter on host and device share: a loop made small, and the sum that accumulation takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ndarray/core/kernel_api.h"
#include "ndarray/kernels/functors/canonical.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

// Drops extents of 1 and merges neighbouring dims that every operand walks as one. At least one dim is left.
inline void compact_loop(IndexArgs& args) noexcept {
  int kept = 0;
  const auto move_dim = [&](int from, int to) {
    args.shape[to] = args.shape[from];
    args.value_strides[to] = args.value_strides[from];
    args.base_strides[to] = args.base_strides[from];
    for (int k = 0; k < args.arrays; ++k) args.index_strides[k][to] = args.index_strides[k][from];
  };
  const auto continues = [&](int inner, int outer) {
    const std::int64_t n = args.shape[inner];
    bool one = args.value_strides[outer] == args.value_strides[inner] * n &&
               args.base_strides[outer] == args.base_strides[inner] * n;
    for (int k = 0; one && k < args.arrays; ++k) one = args.index_strides[k][outer] == args.index_strides[k][inner] * n;
    return one;
  };
  for (int d = 0; d < args.ndim; ++d) {
    if (args.shape[d] == 1) continue;
    if (kept > 0 && continues(kept - 1, d))
      args.shape[kept - 1] *= args.shape[d];
    else
      move_dim(d, kept++);
  }
  if (kept == 0) {
    args.shape[0] = 1;
    args.value_strides[0] = args.base_strides[0] = 0;
    for (int k = 0; k < args.arrays; ++k) args.index_strides[k][0] = 0;
    kept = 1;
  }
  args.ndim = kept;
}

// True for a dim along which some index moves; a dim that moves nothing in the base either counts as one: its elements
// meet at the same place.
inline bool is_index_dim(const IndexArgs& args, int dim) noexcept {
  if (args.base_strides[dim] == 0) return true;
  for (int k = 0; k < args.arrays; ++k)
    if (args.index_strides[k][dim] != 0) return true;
  return false;
}

// An index wraps once, then is clamped: the host has refused all that clamping would change.
DLBRIDGE_ND_HD inline std::int64_t resolve_index(std::int64_t i, std::int64_t extent) noexcept {
  if (i < 0) i += extent;
  if (i < 0) return 0;
  return i < extent ? i : extent - 1;
}

// The sum of an accumulating scatter, in the type that values of T are computed with; bool takes `or`.
template <class T>
DLBRIDGE_ND_HD inline arith_t<T> accumulated(arith_t<T> a, arith_t<T> b) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else
    return static_cast<arith_t<T>>(a + b);
}

// Calls f.template operator()<T>() with a type that adds as `dtype` does: signed and unsigned integers wrap alike.
template <class F>
int visit_accumulated(DType dtype, F&& f) {
  return visit_dtype < kAllSet & ~kSignedSet > (unsigned_of(dtype), f, kErrorUnsupported);
}

}  // namespace dlbridge::nd
