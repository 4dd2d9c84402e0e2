// Bits in bytes; as in positions.h, `done` is false for arrays of another dtype.
#pragma once

#include <optional>

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// Of all elements in C order, which are integers or bools: see kernels/host/bits.h.
Status pack_bits(const Tensor& x, bool little, Tensor& out, bool& done);
// Of all elements in C order, which are uint8.
Status unpack_bits(const Tensor& x, bool little, Tensor& out, bool& done);

// Along an axis, on the host alone. count: of bits, all but so many where it is negative; `done` is false where there
// are not so many.
Status pack_bits_along(const Tensor& x, int axis, bool little, Tensor& out, bool& done);
Status unpack_bits_along(const Tensor& x, int axis, std::optional<std::int64_t> count, bool little, Tensor& out,
                         bool& done);

}  // namespace dlbridge::nd
