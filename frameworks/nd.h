// The ndarray of dlbridge, a consumer like any other.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kNdTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes | kBFloat16,
               .devices = kOnHost | kOnCuda,
               .strides = stride_rule::any,
               .read_only = true},
     .enter = "from_dlpack"},
};
inline constexpr const char* kNdNames[] = {"dlbridge.nd"};
inline constexpr Framework kNd{.name = "nd", .module = "dlbridge.nd", .aliases = kNdNames, .consumers = kNdTakes};

}  // namespace dlbridge::frameworks
