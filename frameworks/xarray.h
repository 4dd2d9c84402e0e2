// xarray: DataArrays over NumPy's arrays.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kXarrayTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes, .devices = kOnHost, .strides = stride_rule::any, .read_only = true},
     .enter = "xarray"},
};
inline constexpr Framework kXarray{.name = "xarray", .module = "xarray", .consumers = kXarrayTakes};

}  // namespace dlbridge::frameworks
