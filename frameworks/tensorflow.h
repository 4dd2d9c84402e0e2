// TensorFlow: immutable tensors, dense in C order.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// TensorFlow imports a pointer of any alignment, and its first kernel on it then ends the process with "Check failed:
// IsAligned()"; the limit is EIGEN_MAX_ALIGN_BYTES, 64 in the AVX-512 builds. Any stride but row-major is "Invalid
// strides array from DLPack".
inline constexpr DTypeSet kTensorflowDTypes = kNumpyDTypes | kBFloat16;
inline constexpr Consumer kTensorflowTakes[] = {
    {.takes = {.dtypes = kTensorflowDTypes, .alignment = 64, .read_only = true},
     .enter = "tensorflow",
     .immutable = true},
    {.takes = {.dtypes = kTensorflowDTypes, .devices = devices(kDLCUDA), .read_only = true},
     .enter = "tensorflow",
     .immutable = true},
};
inline constexpr const char* kTensorflowNames[] = {"tf"};
inline constexpr Framework kTensorflow{
    .name = "tensorflow", .module = "tensorflow", .aliases = kTensorflowNames, .consumers = kTensorflowTakes};

}  // namespace dlbridge::frameworks
