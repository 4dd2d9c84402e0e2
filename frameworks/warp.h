// NVIDIA Warp: arrays of one to four dimensions. It has no mark for memory that nobody may write to, and asks the
// driver of what is said to be pinned.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kWarpTakes[] = {
    {.takes = {.dtypes = kBoolAndNumbers | kBFloat16,
               .devices = kOnCpu | devices(kDLCUDA),
               .min_rank = 1,
               .max_rank = 4,
               .strides = stride_rule::any},
     .enter = "warp",
     .note = "Warp has no such type; cast it, or view complex numbers as pairs."}};
inline constexpr Framework kWarp{.name = "warp", .module = "warp", .consumers = kWarpTakes};

}  // namespace dlbridge::frameworks
