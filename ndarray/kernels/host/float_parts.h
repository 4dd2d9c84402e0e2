// Powers of two and distances of floats on the host, in one pass. T: float, double.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// x * 2^exponent, rounded once. Exponent: int32_t, int64_t.
template <class T, class Exponent>
void scale_by_powers(const T* x, const Exponent* exponents, std::int64_t n, T* out) noexcept;
// The distance to the next number away from zero. T: float16, too.
template <class T>
void find_spacings(const T* x, std::int64_t n, T* out) noexcept;

}  // namespace dlbridge::nd::host_kernels
