// New arrays that hold another's elements at other places, or not all of them.
#pragma once

#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

// The elements of the last two axes at and below (lower) or above the diagonal of that number, others 0. A vector is
// each row of a square; there is one axis or more.
Status triangle(const Tensor& x, std::int64_t diagonal, bool lower, Tensor& out);

// Each element moved along axes, by `steps[axis]` places from 0 to below the extent; what leaves comes in at the start.
Status roll(const Tensor& x, std::span<const std::int64_t> steps, Tensor& out);

// With elements before and behind each axis, `value` or what is there again, in C order. `done` is false, and the
// general way to be taken, where axes are more than a kernel walks, and for a value that the dtype does not hold.
Status pad(const Tensor& x, PadMode mode, Dims before, Dims after, const Scalar& value, Tensor& out, bool& done);

}  // namespace dlbridge::nd
