// pandas: a Series or a DataFrame over NumPy's arrays.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kPandasTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes,
               .devices = kOnHost,
               .min_rank = 1,
               .max_rank = 1,
               .strides = stride_rule::any,
               .read_only = true},
     .enter = "pandas_series"},
    {.takes = {.dtypes = kNumpyDTypes,
               .devices = kOnHost,
               .min_rank = 2,
               .max_rank = 2,
               .strides = stride_rule::any,
               .read_only = true},
     .enter = "pandas_frame"},
};
inline constexpr Framework kPandas{.name = "pandas", .module = "pandas", .consumers = kPandasTakes};

}  // namespace dlbridge::frameworks
