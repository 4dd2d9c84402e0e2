// Floats taken apart: mantissas and exponents as their bits have them.
#pragma once

#include "ndarray/kernels/numbers.h"

namespace dlbridge::nd {

template <class T>
struct FloatForm;
template <>
struct FloatForm<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23, kHalf = 126;  // kHalf: the exponent that 0.5 is stored with
  static constexpr int kLeast = -160, kMost = 130;   // exponents of mantissas: of nothing but 0, of infinity
};
template <>
struct FloatForm<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52, kHalf = 1022;
  static constexpr int kLeast = -1080, kMost = 1030;
};

template <class T>
DLBRIDGE_ND_HD inline T power_of_two(int exponent) noexcept {
  using F = FloatForm<T>;
  return bits_as<T>(static_cast<typename F::Bits>(exponent + F::kHalf + 1) << F::kMantissa);
}

template <class T>
struct FloatParts {
  T mantissa;
  int exponent;
};

// x = mantissa * 2^exponent, the mantissa from 0.5 to below 1; 0, infinities and NaN have the exponent 0.
template <class T>
DLBRIDGE_ND_HD inline FloatParts<T> split_exponent(T x) noexcept {
  if constexpr (is_half_v<T>) {
    const FloatParts<float> parts = split_exponent(to_float(x));
    const bool is_number = parts.mantissa == parts.mantissa;  // of NaN the bits are kept
    return {is_number ? cast<T>(parts.mantissa) : x, parts.exponent};
  } else {
    using F = FloatForm<T>;
    using Bits = typename F::Bits;
    constexpr Bits kOnes = (Bits{1} << (8 * sizeof(T) - 1 - F::kMantissa)) - 1;
    const auto stored = [](T value) { return static_cast<int>(bits_as<Bits>(value) >> F::kMantissa & kOnes); };
    const bool is_small = stored(x) == 0;  // a subnormal number has an exponent when it is multiplied
    const T raised = is_small ? x * power_of_two<T>(F::kMantissa + 1) : x;
    const Bits mantissa = (bits_as<Bits>(raised) & ~(kOnes << F::kMantissa)) | Bits{F::kHalf} << F::kMantissa;
    const int exponent = stored(raised) - F::kHalf - (is_small ? F::kMantissa + 1 : 0);
    const bool is_plain = x != 0 && std::fabs(x) <= std::numeric_limits<T>::max();
    return {is_plain ? bits_as<T>(mantissa) : x, is_plain ? exponent : 0};
  }
}

}  // namespace dlbridge::nd
