// New arrays that hold another's elements at other places, or not all of them.
#pragma once

#include <span>

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// The elements of the last two axes at and below (lower) or above the diagonal of that number, others 0. A vector is
// each row of a square; there is one axis or more.
Status triangle(const Tensor& x, std::int64_t diagonal, bool lower, Tensor& out);

// Each element moved along axes, by `steps[axis]` places from 0 to below the extent; what leaves comes in at the start.
Status roll(const Tensor& x, std::span<const std::int64_t> steps, Tensor& out);

}  // namespace dlbridge::nd
