#include "ndarray/kernels/host/float_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ndarray/kernels/functors/float_form.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <class T, class Exponent>
DLBRIDGE_ND_CLONES void scale_by_powers_of(const T* x, const Exponent* exponents, std::int64_t n, T* out) noexcept {
  using F = FloatForm<T>;
  constexpr int kEnough = 1 << 12;  // from the least number past the largest
  for (std::int64_t i = 0; i < n; ++i) {
    const FloatParts<T> parts = split_exponent(x[i]);
    // By halves, for 2^exponent alone may be no number; the first product is exact.
    const Exponent by = std::clamp<Exponent>(exponents[i], -kEnough, kEnough);
    const int exponent = std::clamp(parts.exponent + static_cast<int>(by), F::kLeast, F::kMost);
    out[i] = parts.mantissa * power_of_two<T>(exponent / 2) * power_of_two<T>(exponent - exponent / 2);
  }
}

template <class T>
DLBRIDGE_ND_CLONES void find_spacings_of(const T* x, std::int64_t n, T* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = x[i] + T(0);  // the zeros have one spacing
    const T next = std::bit_cast<T>(std::bit_cast<typename FloatForm<T>::Bits>(value) + 1);
    out[i] = (std::abs(value) <= std::numeric_limits<T>::max() ? next : value) - value;
  }
}

DLBRIDGE_ND_CLONES void find_spacings_of(const float16* x, std::int64_t n, float16* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const int bits = (x[i].bits & 0x7fff) == 0 ? 0 : x[i].bits;
    const float value = cast<float>(float16{static_cast<std::uint16_t>(bits)});
    const float next = cast<float>(float16{static_cast<std::uint16_t>(bits + 1)});
    out[i] = cast<float16>((std::abs(value) <= std::numeric_limits<float>::max() ? next : value) - value);
  }
}

}  // namespace

template <class T, class Exponent>
void scale_by_powers(const T* x, const Exponent* exponents, std::int64_t n, T* out) noexcept {
  scale_by_powers_of(x, exponents, n, out);
}
template <class T>
void find_spacings(const T* x, std::int64_t n, T* out) noexcept {
  find_spacings_of(x, n, out);
}

#define DLBRIDGE_ND_FLOAT_PARTS(T)                                                                          \
  template void scale_by_powers<T, std::int32_t>(const T*, const std::int32_t*, std::int64_t, T*) noexcept; \
  template void scale_by_powers<T, std::int64_t>(const T*, const std::int64_t*, std::int64_t, T*) noexcept; \
  template void find_spacings<T>(const T*, std::int64_t, T*) noexcept;
template void find_spacings<float16>(const float16*, std::int64_t, float16*) noexcept;
DLBRIDGE_ND_FLOAT_PARTS(float)
DLBRIDGE_ND_FLOAT_PARTS(double)
#undef DLBRIDGE_ND_FLOAT_PARTS

}  // namespace dlbridge::nd::host_kernels
