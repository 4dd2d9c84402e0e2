// NVIDIA DALI: a TensorCPU or a TensorGPU over the memory, by DLPack (from its documentation).
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kDaliTakes[] = {
    {.takes = {.dtypes = kIntegers | kFloats, .devices = kOnCpu | devices(kDLCUDA)},
     .enter = "dali",
     .note = "DALI takes integers and floats by DLPack; cast it, or view it as integers."}};
inline constexpr const char* kDaliNames[] = {"nvidia.dali"};
inline constexpr Framework kDali{
    .name = "dali", .module = "nvidia.dali", .aliases = kDaliNames, .consumers = kDaliTakes};

}  // namespace dlbridge::frameworks
