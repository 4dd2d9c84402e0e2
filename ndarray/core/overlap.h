// Whether two arrays have a byte in common, exactly: their strides may pass each other by.
#pragma once

#include <cstdint>

#include "ndarray/core/array.h"

namespace dlbridge::nd {

enum class Overlap : std::uint8_t { kNone, kSome, kUndecided };

// The general problem is NP-hard, though that of arrays which one meets is small: `most_work` bounds the positions that
// are tried. 0 compares the ranges of addresses alone.
Overlap find_overlap(const Tensor& a, const Tensor& b, std::int64_t most_work) noexcept;

}  // namespace dlbridge::nd
