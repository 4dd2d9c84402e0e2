// dpnp: arrays in the memory of oneAPI devices.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kDpnpTakes[] = {
    {.takes =
         {.dtypes = kNumpyDTypes, .devices = devices(kDLOneAPI), .strides = stride_rule::non_negative, .overlap = true},
     .enter = "from_dlpack"},
    {.takes = {.dtypes = kNumpyDTypes, .strides = stride_rule::any, .overlap = true},
     .enter = "dpnp_host",
     .copies = "its arrays live in device memory"},
};
inline constexpr Framework kDpnp{.name = "dpnp", .module = "dpnp", .consumers = kDpnpTakes};

}  // namespace dlbridge::frameworks
