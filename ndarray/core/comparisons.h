// Comparisons that no loop of one dtype can make.
#pragma once

#include "ndarray/core/elementwise.h"

namespace dlbridge::nd {

// A comparison or logical operation of two operands whose values no dtype holds both of: an integer array with a Python
// int out of its bounds, int64 with uint64. `done`: it was such a one, and is done, by other operations. As NumPy 2.
Status compare_beyond_loops(Op op, std::span<const Input> inputs, const ElementwiseOptions& options, Tensor& result,
                            bool& done);

}  // namespace dlbridge::nd
