// What the functors take of the C++ library and of CUDA's headers. Generated kernels, which NVRTC compiles, may have
// neither: there `types.cuh` has come first with the 16-bit floats and complex, and `std` within our namespace is what
// is below.
#pragma once

#if !defined(DLBRIDGE_TYPES_CUH)

#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dlbridge/half.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define DLBRIDGE_ND_HD __host__ __device__
#else
#define DLBRIDGE_ND_HD
#endif

namespace dlbridge::nd {

template <class To, class From>
DLBRIDGE_ND_HD inline To bits_as(From x) noexcept {
  return __builtin_bit_cast(To, x);
}

}  // namespace dlbridge::nd

#else

#define DLBRIDGE_ND_HD __device__

namespace dlbridge::nd {
namespace std {

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;

template <bool first, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool first, class A, class B>
using conditional_t = typename conditional<first, A, B>::type;

template <class A, class B>
constexpr bool is_same_v = false;
template <class A>
constexpr bool is_same_v<A, A> = true;
template <class T, class... U>
constexpr bool is_any_of = (is_same_v<T, U> || ...);
template <class T>
constexpr bool is_floating_point_v = is_any_of<T, float, double>;
template <class T>
constexpr bool is_signed_integer = is_any_of<T, int8_t, int16_t, int32_t, int64_t>;
template <class T>
constexpr bool is_integral_v = is_signed_integer<T> || is_any_of<T, bool, uint8_t, uint16_t, uint32_t, uint64_t>;
template <class T>
constexpr bool is_signed_v = is_signed_integer<T> || is_floating_point_v<T>;
template <class T>
using make_unsigned_t =
    conditional_t<sizeof(T) == 1, uint8_t,
                  conditional_t<sizeof(T) == 2, uint16_t, conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  DLBRIDGE_ND_HD static constexpr float min() { return 0x1p-126f; }
  DLBRIDGE_ND_HD static constexpr float max() { return 0x1.fffffep127f; }
  DLBRIDGE_ND_HD static float infinity() { return dlbridge_device::bits_to_float(0x7f800000u); }
  DLBRIDGE_ND_HD static float quiet_NaN() { return dlbridge_device::bits_to_float(0x7fc00000u); }
};
template <>
struct numeric_limits<double> {
  DLBRIDGE_ND_HD static constexpr double min() { return 0x1p-1022; }
  DLBRIDGE_ND_HD static constexpr double max() { return 0x1.fffffffffffffp1023; }
  DLBRIDGE_ND_HD static double infinity() { return numeric_limits<float>::infinity(); }
  DLBRIDGE_ND_HD static double quiet_NaN() { return numeric_limits<float>::quiet_NaN(); }
};

template <class T>
DLBRIDGE_ND_HD inline bool isinf(T x) {
  return x == numeric_limits<T>::infinity() || x == -numeric_limits<T>::infinity();
}

// clang-format off
using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; using ::atanh; using ::cbrt;
using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf; using ::exp; using ::exp2; using ::expm1;
using ::fabs; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::hypot; using ::log;
using ::log10; using ::log1p; using ::log2; using ::pow; using ::rint; using ::sin; using ::sinh; using ::sqrt;
using ::tan; using ::tanh; using ::trunc;
// clang-format on

}  // namespace std

template <class To, class From>
DLBRIDGE_ND_HD inline To bits_as(From x) noexcept {  // NVRTC knows no std::bit_cast, of early releases not the builtin
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  memcpy(&to, &x, sizeof(To));
  return to;
}

}  // namespace dlbridge::nd

#endif
