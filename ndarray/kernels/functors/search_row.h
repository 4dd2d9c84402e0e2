// Binary search in a sorted row, in the order of the sorts.
#pragma once

#include "ndarray/kernels/functors/sort_keys.h"

namespace dlbridge::nd::functors {

// The number of elements of the row, `step` apart, that come before `value`, and with `right` those equal to it too.
template <class T>
DLBRIDGE_ND_HD inline std::int64_t search_row(const T* sorted, std::int64_t step, std::int64_t n, T value,
                                              bool right) noexcept {
  const auto key = order_key(value);
  std::int64_t first = 0;
  while (n > 0) {
    const std::int64_t half = n / 2;
    const auto middle = order_key(sorted[(first + half) * step]);
    const bool advance = right ? !(key < middle) : middle < key;
    first = advance ? first + half + 1 : first;
    n = advance ? n - half - 1 : half;
  }
  return first;
}

}  // namespace dlbridge::nd::functors
