// Functions of positions on the host, in one pass. Each says in `done` whether it served: where it is false nothing is
// made or written, and the general way is to be taken, which also says what is wrong with operands.
#pragma once

#include <optional>
#include <span>

#include "ndarray/core/array.h"
#include "ndarray/kernels/host/positions.h"

namespace dlbridge::nd {

// The places of positions along the axes of C order; parts of one shape.
Status ravel_positions(std::span<const Tensor* const> parts, Dims extents, Bounds bounds, Tensor& out, bool& done);
// The positions along the axes of places; one of `parts` for each.
Status unravel_positions(const Tensor& places, Dims extents, std::span<Tensor> parts, bool& done);

// How often each integer from 0 on occurs, or the sums of its weights, of those up to the largest or `least` - 1.
Status count_values(const Tensor& x, const Tensor* weights, std::int64_t least, Tensor& counts, bool& done);

// The values at their own places where the mask is true.
Status put_masked(const Tensor& x, const Tensor& mask, const Tensor& values, bool& done);
// The values one after the other where the mask is true; they begin again behind the last one.
Status place(const Tensor& x, const Tensor& mask, const Tensor& values, bool& done);

// For each number the element of that choice.
Status choose(const Tensor& numbers, std::span<const Tensor* const> choices, Tensor& out, bool& done);

}  // namespace dlbridge::nd
