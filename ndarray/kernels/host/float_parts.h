// Floats taken apart and put together on the host, in one pass. T: float, double.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// x = mantissa * 2^exponent, the mantissa from 0.5 to below 1; 0, infinities and NaN have the exponent 0.
template <class T>
void split_exponents(const T* x, std::int64_t n, T* mantissas, std::int32_t* exponents) noexcept;
// x * 2^exponent, rounded once. Exponent: int32_t, int64_t.
template <class T, class Exponent>
void scale_by_powers(const T* x, const Exponent* exponents, std::int64_t n, T* out) noexcept;
// The parts behind and before the point, both with the sign of x.
template <class T>
void split_wholes(const T* x, std::int64_t n, T* fractions, T* wholes) noexcept;
// The distance to the next number away from zero.
template <class T>
void find_spacings(const T* x, std::int64_t n, T* out) noexcept;
// In place: NaN, infinity and the negative one by numbers.
template <class T>
void replace_specials(T* x, std::int64_t n, T nan, T high, T low) noexcept;

}  // namespace dlbridge::nd::host_kernels
