// Copies of elements between two layouts, where no cast and no element alone is in question.
#pragma once

#include "ndarray/kernels/functors/loop.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {

// Copies elements of `itemsize` bytes along one dim; null for a size that no dtype has.
InnerLoop copy_loop(int itemsize) noexcept;

// Copies operand 1 of the loop to operand 0, both of elements of `itemsize` bytes, where two dims at once are better
// than one after the other: rows that are dense on both sides, axes in another order, short rows. False where nothing
// was done.
bool copy_planes(const KernelLoop& loop, int itemsize) noexcept;

}  // namespace dlbridge::nd::host_kernels
