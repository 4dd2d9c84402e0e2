// Where a run of equal elements begins in a sorted row; of integers whatever their sign, for their bits differ.
#pragma once

#include "ndarray/kernels/functors/sort_keys.h"

namespace dlbridge::nd::functors {

// What RunsArgs::dtype may be.
inline constexpr DTypeSet kRunSet = kUnsignedSet | kInexactSet;

template <class Bits>
DLBRIDGE_ND_HD constexpr bool is_nan_key(Bits key) noexcept {
  return key == kAllOnes<Bits>;
}
template <class Bits>
DLBRIDGE_ND_HD constexpr bool is_nan_key(const ComplexKey<Bits>& key) noexcept {
  return key.high >= static_cast<Bits>(kAllOnes<Bits> - 2);  // the groups of what has NaN
}

// Whether `here` is another element than the one `before` it. Behind NaN there is nothing but NaN.
template <class T>
DLBRIDGE_ND_HD constexpr bool begins_run(T before, T here, bool equal_nan) noexcept {
  const auto key = order_key(before);
  if constexpr (contains(kInexactSet, dtype_of_native<T>::value)) {
    if (is_nan_key(key)) return !equal_nan;
  }
  const auto next = order_key(here);
  return key < next || next < key;
}

}  // namespace dlbridge::nd::functors
