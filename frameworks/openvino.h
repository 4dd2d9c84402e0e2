// OpenVINO.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kOpenvinoTakes[] = {
    {.takes = {.dtypes = kBoolAndNumbers}, .enter = "openvino"},
};
inline constexpr Framework kOpenvino{.name = "openvino", .module = "openvino", .consumers = kOpenvinoTakes};

}  // namespace dlbridge::frameworks
