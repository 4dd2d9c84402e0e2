// The loop along one dim that the host's families share, and the casts among them.
#pragma once

#include <cstdint>

#include "dlbridge/dtype.h"

// A function that is compiled for several generations of x86-64, of which the loader takes the best that the machine
// has; what it calls becomes part of it. Sanitizers do not come up before the loader asks, and builds for debugging are
// made for one machine.
#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__OPTIMIZE__) && \
    defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DLBRIDGE_ND_CLONES [[gnu::flatten, gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
// For complex numbers, whose products and sums GCC contracts in pairs although it is told not to.
#define DLBRIDGE_ND_CLONES_WITHOUT_FMA [[gnu::flatten, gnu::target_clones("default", "avx2")]]
#else
#define DLBRIDGE_ND_CLONES
#define DLBRIDGE_ND_CLONES_WITHOUT_FMA
#endif

namespace dlbridge::nd::host_kernels {

// Elements of a block for functions that look at several before they compute one, and write beside what they read.
inline constexpr std::int64_t kDenseBlock = 256;

// data[0] is written, the others are read; strides in bytes, 0 repeats the element.
using InnerLoop = void (*)(char* const* data, const std::int64_t* strides, std::int64_t n);

// data[1] as `from` to data[0] as `to`; null for a dtype without arithmetic. In elementwise_cast.cpp.
InnerLoop cast_loop(DType from, DType to) noexcept;

}  // namespace dlbridge::nd::host_kernels
