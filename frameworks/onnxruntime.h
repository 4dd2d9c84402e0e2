// ONNX Runtime.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// An OrtValue is an input: sessions do not write to it. update_inplace() would, so do not call it on one.
inline constexpr Consumer kOnnxruntimeTakes[] = {
    {.takes = {.dtypes = kBoolAndNumbers | kBFloat16, .devices = kOnCpu | devices(kDLCUDA), .read_only = true},
     .enter = "onnxruntime",
     .immutable = true},
};
inline constexpr const char* kOnnxruntimeNames[] = {"ort"};
inline constexpr Framework kOnnxruntime{
    .name = "onnxruntime", .module = "onnxruntime", .aliases = kOnnxruntimeNames, .consumers = kOnnxruntimeTakes};

}  // namespace dlbridge::frameworks
