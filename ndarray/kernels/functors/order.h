// The order of sort and search: numbers ascending, NaN after all of them, complex numbers lexicographically.
#pragma once

#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

template <class T>
DLBRIDGE_ND_HD inline bool precedes(T a, T b) noexcept {
  if constexpr (is_half_v<T>) {
    return precedes(to_float(a), to_float(b));
  } else if constexpr (is_complex_v<T>) {
    // As NumPy: no NaN, NaN in the imaginary part, NaN in the real part, both.
    const auto rank = [](T z) { return (z.real() != z.real() ? 2 : 0) + (z.imag() != z.imag() ? 1 : 0); };
    const int rank_a = rank(a), rank_b = rank(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    if (rank_a < 2 && a.real() != b.real()) return a.real() < b.real();
    return a.imag() < b.imag();
  } else if constexpr (std::is_floating_point_v<T>) {
    return a < b || (a == a && b != b);
  } else {
    return a < b;
  }
}

// The number of elements of a sorted row that come before `value`, and with `right` those equal to it too.
template <class T>
DLBRIDGE_ND_HD inline std::int64_t search_row(const T* sorted, std::int64_t n, T value, bool right) noexcept {
  std::int64_t first = 0;
  while (n > 0) {
    const std::int64_t half = n / 2;
    const T middle = sorted[first + half];
    const bool advance = right ? !precedes(value, middle) : precedes(middle, value);
    first = advance ? first + half + 1 : first;
    n = advance ? n - half - 1 : half;
  }
  return first;
}

}  // namespace dlbridge::nd
