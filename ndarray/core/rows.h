// Rows of an axis left out and put in, on the host, of arrays that are dense in C order.
#pragma once

#include <cstdint>
#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"

namespace dlbridge::nd {

// Without the rows that are marked by 1, one byte for each.
Status drop_rows(const Tensor& x, int axis, std::span<const std::uint8_t> dropped, Tensor& out);
// With a row of `value`, cast as NumPy casts arrays, before each of some rows, which rise.
Status insert_rows(const Tensor& x, int axis, std::span<const std::int64_t> before, const Scalar& value, Tensor& out);

}  // namespace dlbridge::nd
