// Arrow in Python. Arrays and Tensors are immutable to their user.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// One dimension gives an Array, whose bool is packed to bits; any other rank a Tensor, which has no bool (from_numpy()
// makes it uint8) and no complex type.
inline constexpr Consumer kPyarrowTakes[] = {
    {.takes = {.dtypes = kBoolAndNumbers, .devices = kOnHost, .min_rank = 1, .max_rank = 1, .read_only = true},
     .enter = "pyarrow_array",
     .immutable = true,
     .copied_dtypes = dtypes(DType::kBool),
     .note = "Arrow has no such type; cast it, or view complex numbers as pairs of floats."},
    {.takes =
         {.dtypes = kIntegers | kFloats, .devices = kOnHost, .strides = stride_rule::non_negative, .read_only = true},
     .enter = "pyarrow_tensor",
     .note = "pyarrow.Tensor has no such type; cast it, or view it as integers."},
};
inline constexpr const char* kPyarrowNames[] = {"arrow"};
inline constexpr Framework kPyarrow{
    .name = "pyarrow", .module = "pyarrow", .aliases = kPyarrowNames, .consumers = kPyarrowTakes};

}  // namespace dlbridge::frameworks
