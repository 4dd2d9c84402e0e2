// What PyTorch takes, as at::Tensor in C++ and as torch.Tensor in Python.
#pragma once

#include "dlbridge/caps.h"

namespace dlbridge {

// A negative stride does not raise in PyTorch's importer: it ends the process (pytorch#188023). Stride 0 is PyTorch's
// own expand(): it refuses to write to such a tensor itself.
inline constexpr caps kTorchCaps{
    .name = "at::Tensor",
    .dtypes =
        dtypes(DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16,
               DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
               DType::kComplex32, DType::kComplex64, DType::kComplex128, DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ,
               DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ, DType::kFloat8E8M0FNU, DType::kFloat4E2M1FNx2),
    .devices = kOnHost | kOnCuda,
    .strides = stride_rule::non_negative,
    .overlap = true,
    .source = source_kind::handle,
    .result = result_kind::owner};

}  // namespace dlbridge
