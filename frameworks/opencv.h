// OpenCV in Python: its matrices are NumPy's arrays, as far as a cv::Mat can say them. It guards read-only ones itself.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// Wider integers are narrowed in silence. A cv::cuda::GpuMat over foreign memory does not keep that memory alive, so
// there is none to give.
inline constexpr Consumer kOpencvTakes[] = {
    {.takes = {.dtypes = dtypes(DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16) | kFloats,
               .devices = kOnHost,
               .min_rank = 1,
               .max_rank = 32,
               .strides = stride_rule::pitched,
               .read_only = true},
     .enter = "numpy",
     .note = "OpenCV's matrices have no such type; cast it, for example to int32 or uint8."}};
inline constexpr const char* kOpencvNames[] = {"cv2"};
inline constexpr Framework kOpencv{
    .name = "opencv", .module = "cv2", .aliases = kOpencvNames, .consumers = kOpencvTakes};

}  // namespace dlbridge::frameworks
