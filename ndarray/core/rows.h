// Rows of an axis left out and put in, on the host.
#pragma once

#include <cstdint>
#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"

namespace dlbridge::nd {

// How the result lies: in C order; in Fortran's where x is in that alone; or by rows one behind the other, each as x
// lies, unless that is dense in C order.
enum class RowOrder : std::uint8_t { kC, kAsGiven, kRowsOutermost };

// Without the rows that are marked by 1, one byte for each.
Status drop_rows(const Tensor& x, int axis, std::span<const std::uint8_t> dropped, RowOrder order, Tensor& out);
// With a row of `value`, cast as NumPy casts arrays, before each of some rows, which rise; in Fortran's order where x
// is in that alone.
Status insert_rows(const Tensor& x, int axis, std::span<const std::int64_t> before, const Scalar& value, Tensor& out);

}  // namespace dlbridge::nd
