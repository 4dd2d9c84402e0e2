// The dims of a loop over one or more operands, innermost first: their order, and which neighbours are one. A row holds
// the strides of one operand, by dim, in any unit.
#pragma once

#include <cstdint>

namespace dlbridge {

// Whether a walk along the inner dim ends where the outer dim's next step begins: the two are one dim.
constexpr bool continues(std::int64_t outer_stride, std::int64_t inner_stride, std::int64_t inner_extent) noexcept {
  return outer_stride == inner_stride * inner_extent;
}

// Drops extents of 1 and joins neighbours that every row walks as one; returns how many dims are left.
inline int merge_dims(std::int64_t* shape, int ndim, std::int64_t* const* rows, int count) noexcept {
  int kept = 0;
  for (int d = 0; d < ndim; ++d) {
    if (shape[d] == 1) continue;
    bool joins = kept > 0;
    for (int k = 0; k < count && joins; ++k) joins = continues(rows[k][d], rows[k][kept - 1], shape[kept - 1]);
    if (joins) {
      shape[kept - 1] *= shape[d];
      continue;
    }
    if (kept != d) {
      shape[kept] = shape[d];
      for (int k = 0; k < count; ++k) rows[k][kept] = rows[k][d];
    }
    ++kept;
  }
  return kept;
}

// The smallest step of rows[leader] innermost. An insertion sort: the order is nearly always right already.
inline void sort_dims(std::int64_t* shape, int ndim, std::int64_t* const* rows, int count, int leader) noexcept {
  const auto step = [&](int d) { return rows[leader][d] < 0 ? -rows[leader][d] : rows[leader][d]; };
  const auto swap = [](std::int64_t* row, int d) {
    const std::int64_t kept = row[d];
    row[d] = row[d - 1];
    row[d - 1] = kept;
  };
  for (int i = 1; i < ndim; ++i)
    for (int d = i; d > 0 && step(d) < step(d - 1); --d) {
      swap(shape, d);
      for (int k = 0; k < count; ++k) swap(rows[k], d);
    }
}

}  // namespace dlbridge
