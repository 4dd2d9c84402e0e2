// nanoarrow: an Array over the memory, through Arrow's structs. It is immutable to its user.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// More dimensions than one give an array of arrow.fixed_shape_tensor.
inline constexpr Consumer kNanoarrowTakes[] = {
    {.takes = {.dtypes = kIntegers | kFloats, .devices = kOnHost, .min_rank = 1, .read_only = true},
     .enter = "nanoarrow_array",
     .immutable = true,
     .note = "Arrow has no such type, and packs bools to bits; cast it, or view it as integers."}};
inline constexpr Framework kNanoarrow{.name = "nanoarrow", .module = "nanoarrow", .consumers = kNanoarrowTakes};

}  // namespace dlbridge::frameworks
