// The buffer protocol: a memoryview.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kBufferTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes | dtypes(DType::kComplex32),
               .devices = kOnHost,
               .strides = stride_rule::any,
               .read_only = true},
     .enter = "buffer",
     .note = "PEP 3118 has no code for it; take it through DLPack."},
};
inline constexpr const char* kBufferNames[] = {"memoryview", "builtins"};
inline constexpr Framework kBuffer{
    .name = "buffer", .module = "builtins", .aliases = kBufferNames, .consumers = kBufferTakes};

}  // namespace dlbridge::frameworks
