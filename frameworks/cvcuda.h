// CV-CUDA: a Tensor over the memory, by the CUDA Array Interface (from its documentation).
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kCvcudaTakes[] = {
    {.takes = {.dtypes = dtypes(DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16,
                                DType::kUInt32, DType::kFloat32, DType::kFloat64),
               .devices = kOnCuda,
               .min_rank = 1},
     .enter = "cvcuda",
     .note = "cast it to a number of 8 to 32 bits, or to float64."}};
inline constexpr Framework kCvcuda{.name = "cvcuda", .module = "cvcuda", .consumers = kCvcudaTakes};

}  // namespace dlbridge::frameworks
