// Paddle.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kPaddleTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes | kBFloat16,
               .devices = kOnCpu | devices(kDLCUDA),
               .strides = stride_rule::non_negative},
     .enter = "paddle"},
};
inline constexpr Framework kPaddle{.name = "paddle", .module = "paddle", .consumers = kPaddleTakes};

}  // namespace dlbridge::frameworks
