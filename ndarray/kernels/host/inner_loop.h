// The loop along one dim that the host's families share, and the casts among them.
#pragma once

#include <cstdint>

#include "dlbridge/dtype.h"

namespace dlbridge::nd::host_kernels {

// data[0] is written, the others are read; strides in bytes, 0 repeats the element.
using InnerLoop = void (*)(char* const* data, const std::int64_t* strides, std::int64_t n);

// data[1] as `from` to data[0] as `to`; null for a dtype without arithmetic. In elementwise_cast.cpp.
InnerLoop cast_loop(DType from, DType to) noexcept;

}  // namespace dlbridge::nd::host_kernels
