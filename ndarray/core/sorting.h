// Sorts along axes, and searches in what is sorted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ndarray/core/array.h"

namespace dlbridge::nd {

struct SortOptions {
  bool descending = false;
  bool stable = true;
  // Unless empty: the elements that must stand where a sort puts them, nothing before one larger and nothing behind it
  // smaller. The host may leave it at that, and at an order of equal elements that is not stable.
  std::span<const std::int64_t> places = {};
};
Status sort(const Tensor& x, int axis, const SortOptions& options, Tensor& keys);
Status sort_in_place(const Tensor& x, int axis, const SortOptions& options);
Status argsort(const Tensor& x, int axis, const SortOptions& options, Tensor& indices);

// The positions that sort by several keys, the last one first in importance: vectors of one length, at least one.
Status lexsort(std::span<const Tensor* const> keys, Tensor& indices);

// Where each of `values` would go into the sorted 1-D array, or how many of it come behind; int64, of the values'
// shape. One dtype.
Status searchsorted(const Tensor& sorted, const Tensor& values, bool right, bool from_end, Tensor& result);

// The piecewise linear function through (knots, values), two vectors of one length > 0, at `at`; outside `left` and
// `right`, or the first and the last value. Of real numbers on the host alone.
Status interpolate(const Tensor& at, const Tensor& knots, const Tensor& values, std::optional<double> left,
                   std::optional<double> right, Tensor& result);

}  // namespace dlbridge::nd
