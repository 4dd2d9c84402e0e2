// The element types of the kernels with their conversions, for hosts, nvcc and generated kernels alike.
#pragma once

#include "ndarray/kernels/portable.h"

namespace dlbridge::nd {

#if defined(DLBRIDGE_TYPES_CUH)
using ::complex;
#elif defined(__CUDACC__)
// std::complex has no device code, and the toolkit's headers that have it take seconds to compile. Multiplication and
// division are the textbook's and Smith's, in functors/arithmetic.h: the operators here are what sums need.
template <class T>
class alignas(2 * sizeof(T)) complex {
 public:
  using value_type = T;
  complex() = default;
  DLBRIDGE_ND_HD constexpr complex(T re, T im = T(0)) noexcept : re_(re), im_(im) {}
  template <class U>
    requires(!std::is_same_v<U, T>)
  DLBRIDGE_ND_HD constexpr explicit complex(const complex<U>& z) noexcept
      : re_(static_cast<T>(z.real())), im_(static_cast<T>(z.imag())) {}

  DLBRIDGE_ND_HD constexpr T real() const noexcept { return re_; }
  DLBRIDGE_ND_HD constexpr T imag() const noexcept { return im_; }

  DLBRIDGE_ND_HD constexpr complex& operator+=(complex z) noexcept { return *this = *this + z; }
  DLBRIDGE_ND_HD constexpr complex& operator-=(complex z) noexcept { return *this = *this - z; }
  DLBRIDGE_ND_HD constexpr complex& operator*=(complex z) noexcept { return *this = *this * z; }
  DLBRIDGE_ND_HD friend constexpr complex operator-(complex z) noexcept { return {-z.re_, -z.im_}; }
  DLBRIDGE_ND_HD friend constexpr complex operator+(complex a, complex b) noexcept {
    return {a.re_ + b.re_, a.im_ + b.im_};
  }
  DLBRIDGE_ND_HD friend constexpr complex operator-(complex a, complex b) noexcept {
    return {a.re_ - b.re_, a.im_ - b.im_};
  }
  DLBRIDGE_ND_HD friend constexpr complex operator*(complex a, complex b) noexcept {
    return {a.re_ * b.re_ - a.im_ * b.im_, a.re_ * b.im_ + a.im_ * b.re_};
  }
  DLBRIDGE_ND_HD friend constexpr complex operator*(complex a, T b) noexcept { return {a.re_ * b, a.im_ * b}; }
  DLBRIDGE_ND_HD friend constexpr complex operator/(complex a, T b) noexcept { return {a.re_ / b, a.im_ / b}; }
  DLBRIDGE_ND_HD friend constexpr bool operator==(complex a, complex b) noexcept {
    return a.re_ == b.re_ && a.im_ == b.im_;
  }

 private:
  T re_, im_;
};
#else
template <class T>
using complex = std::complex<T>;
#endif

// 16-bit floats are storage types: they are loaded as float, computed with, and rounded (to nearest even) on store.
#if defined(DLBRIDGE_TYPES_CUH)
using ::bfloat16;
using ::float16;
#else
struct float16 {
  std::uint16_t bits;
};
struct bfloat16 {
  std::uint16_t bits;
};
#endif

namespace detail {
DLBRIDGE_ND_HD inline std::uint32_t float_bits(float x) noexcept { return bits_as<std::uint32_t>(x); }
DLBRIDGE_ND_HD inline float float_from_bits(std::uint32_t x) noexcept { return bits_as<float>(x); }

#if !defined(__CUDA_ARCH__) && !defined(DLBRIDGE_TYPES_CUH)
using dlbridge::detail::float_to_bfloat;
using dlbridge::detail::float_to_half;
using dlbridge::detail::half_to_float;
#endif
}  // namespace detail

#if defined(DLBRIDGE_TYPES_CUH)
DLBRIDGE_ND_HD inline float to_float(float16 x) noexcept { return x; }
DLBRIDGE_ND_HD inline float to_float(bfloat16 x) noexcept { return x; }
DLBRIDGE_ND_HD inline float16 to_float16(float x) noexcept { return float16(x); }
DLBRIDGE_ND_HD inline float16 to_float16(double x) noexcept {
  float16 half;
  half.bits = dlbridge_device::double_to_half(x);
  return half;
}
DLBRIDGE_ND_HD inline bfloat16 to_bfloat16(float x) noexcept { return bfloat16(x); }
#else
DLBRIDGE_ND_HD inline float to_float(float16 x) noexcept {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(x.bits));
#else
  return detail::half_to_float(x.bits);
#endif
}
DLBRIDGE_ND_HD inline float to_float(bfloat16 x) noexcept {
  return detail::float_from_bits(static_cast<std::uint32_t>(x.bits) << 16);
}
DLBRIDGE_ND_HD inline float16 to_float16(float x) noexcept {
#if defined(__CUDA_ARCH__)
  return {__half_as_ushort(__float2half_rn(x))};
#else
  return {detail::float_to_half(x)};
#endif
}
DLBRIDGE_ND_HD inline float16 to_float16(double x) noexcept {
#if defined(__CUDA_ARCH__)
  return {__half_as_ushort(__double2half(x))};
#else
  return {detail::float_to_half(dlbridge::detail::float_to_round(x))};
#endif
}
DLBRIDGE_ND_HD inline bfloat16 to_bfloat16(float x) noexcept {
#if defined(__CUDA_ARCH__)
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#else
  return {detail::float_to_bfloat(x)};
#endif
}
#endif

template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<complex<T>> = true;
template <class T>
inline constexpr bool is_integer_v = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
inline constexpr bool is_float_v = std::is_floating_point_v<T> || is_half_v<T>;

// An element of a bool array in memory. Others may have written any byte there, what is not 0 is true, and a C++ bool
// holds nothing but 0 and 1: kernels read the byte.
struct BoolByte {
  std::uint8_t byte;
  DLBRIDGE_ND_HD explicit operator std::uint8_t() const noexcept { return byte != 0; }
};
template <class T>
using stored_t = std::conditional_t<std::is_same_v<T, bool>, BoolByte, T>;

// The type that values of T are computed with.
template <class T>
using arith_t = std::conditional_t<is_half_v<T>, float, T>;

template <class T>
struct real_of {
  using type = T;
};
template <class T>
struct real_of<complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename real_of<T>::type;

namespace detail {
// Float to integer. Narrow targets go through a wider signed type and wrap, so that a negative value gives the same
// bits in a signed and in an unsigned target (NumPy's result on x86-64, and what lets both share one kernel).
template <class To, class From>
DLBRIDGE_ND_HD inline To truncate(From x) noexcept {
  if constexpr (std::is_same_v<To, std::uint64_t>)
    return x < From(0) ? static_cast<To>(static_cast<std::int64_t>(x)) : static_cast<To>(x);
  else if constexpr (std::is_same_v<To, std::uint32_t>) return static_cast<To>(static_cast<std::int64_t>(x));
  else if constexpr (sizeof(To) < 4) return static_cast<To>(static_cast<std::int32_t>(x));
  else return static_cast<To>(x);
}
}  // namespace detail

// NumPy's casts: float to integer truncates, to bool asks != 0, complex to real drops the imaginary part. float64 to
// float16 rounds once; float64 to bfloat16 and integers to 16-bit floats go by way of float32, as elsewhere.
template <class To, class From>
DLBRIDGE_ND_HD inline To cast(From x) noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, BoolByte>) {
    return cast<To>(x.byte != 0);
  } else if constexpr (std::is_same_v<To, BoolByte>) {
    return BoolByte{cast<std::uint8_t>(cast<bool>(x))};
  } else if constexpr (is_half_v<From>) {
    return cast<To>(to_float(x));
  } else if constexpr (std::is_same_v<To, float16>) {
    if constexpr (std::is_same_v<From, double> || std::is_same_v<From, complex<double>>)
      return to_float16(cast<double>(x));
    else return to_float16(cast<float>(x));
  } else if constexpr (std::is_same_v<To, bfloat16>) {
    return to_bfloat16(cast<float>(x));
  } else if constexpr (is_complex_v<To>) {
    if constexpr (is_complex_v<From>) return To(static_cast<real_t<To>>(x.real()), static_cast<real_t<To>>(x.imag()));
    else return To(static_cast<real_t<To>>(x), real_t<To>(0));
  } else if constexpr (is_complex_v<From>) {
    if constexpr (std::is_same_v<To, bool>) return x.real() != 0 || x.imag() != 0;
    else return cast<To>(x.real());
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return detail::truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class T>
DLBRIDGE_ND_HD inline arith_t<T> load(const T* p) noexcept {
  if constexpr (is_half_v<T>) return to_float(*p);
  else return *p;
}

}  // namespace dlbridge::nd
