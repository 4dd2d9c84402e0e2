// Bits in bytes; as in positions.h, `done` is false for arrays of another dtype.
#pragma once

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// Of all elements in C order, which are integers or bools: see kernels/host/bits.h.
Status pack_bits(const Tensor& x, bool little, Tensor& out, bool& done);
// Of all elements in C order, which are uint8.
Status unpack_bits(const Tensor& x, bool little, Tensor& out, bool& done);

}  // namespace dlbridge::nd
