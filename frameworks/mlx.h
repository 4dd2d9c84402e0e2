// MLX: its arrays own their memory.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kMlxTakes[] = {
    {.takes = {.dtypes =
                   dtypes(DType::kBool, DType::kFloat16, DType::kFloat32, DType::kComplex64) | kIntegers | kBFloat16,
               .strides = stride_rule::any,
               .overlap = true},
     .enter = "mlx",
     .copies = "its arrays own their memory"},
};
inline constexpr const char* kMlxNames[] = {"mlx.core"};
inline constexpr Framework kMlx{.name = "mlx", .module = "mlx", .aliases = kMlxNames, .consumers = kMlxTakes};

}  // namespace dlbridge::frameworks
