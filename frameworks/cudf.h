// cuDF: a Series shares memory, a DataFrame holds one buffer a column.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr DTypeSet kCudfDTypes = dtypes(DType::kBool) | kIntegers | dtypes(DType::kFloat32, DType::kFloat64);
inline constexpr Consumer kCudfTakes[] = {
    {.takes = {.dtypes = kCudfDTypes, .devices = kOnCuda, .min_rank = 1, .max_rank = 1, .overlap = true},
     .enter = "cudf_series"},
    {.takes = {.dtypes = kCudfDTypes,
               .devices = kOnCuda,
               .min_rank = 2,
               .max_rank = 2,
               .strides = stride_rule::non_negative,
               .result = result_kind::copy},
     .enter = "cudf_frame",
     .copies = "a DataFrame holds one buffer a column"},
};
inline constexpr Framework kCudf{.name = "cudf", .module = "cudf", .consumers = kCudfTakes};

}  // namespace dlbridge::frameworks
