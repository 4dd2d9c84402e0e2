// float16 and bfloat16, element types for C++ that has none of its own: they are stored as 16 bits and computed with as
// float. On the host; kernels have those of CUDA, for which dtype_of can be specialised.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "dlbridge/dtype.h"

namespace dlbridge {

namespace detail {
// Without branches, so that loops over them become vectors: every case is computed, and one is chosen.
constexpr float half_to_float(std::uint16_t h) noexcept {
  const std::int32_t rest = h & 0x7fff;
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16;
  const std::uint32_t normal = (static_cast<std::uint32_t>(rest) << 13) + 0x38000000u;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24f);
  const std::uint32_t special = rest >= 0x7c00 ? 0x7f800000u : 0u;  // inf, NaN
  return std::bit_cast<float>(sign | special | (rest >= 0x0400 ? normal : subnormal));
}
constexpr std::uint16_t float_to_half(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t positive = bits & 0x7fffffffu;
  const auto magnitude = static_cast<std::int32_t>(positive);
  const bool is_nan = magnitude > 0x7f800000;
  const auto normal = static_cast<std::int32_t>(positive + 0xfffu + ((positive >> 13) & 1u) - 0x38000000u) >> 13;
  // Adding 0.5 puts the half's last bit at the float's last bit, and the addition rounds to nearest even.
  float shifted = 0.5f;
  // A sum with NaN is no constant.
  if (!(std::is_constant_evaluated() && is_nan)) shifted += std::bit_cast<float>(magnitude);
  const std::int32_t subnormal = std::bit_cast<std::int32_t>(shifted) - 0x3f000000;
  std::int32_t rest = magnitude >= 0x38800000 ? normal : subnormal;
  rest = magnitude >= 0x477ff000 ? 0x7c00 : rest;  // rounds past 65504
  rest = is_nan ? 0x7e00 | ((magnitude >> 13) & 0x3ff) : rest;
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | static_cast<std::uint32_t>(rest));
}
constexpr std::uint16_t float_to_bfloat(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = static_cast<std::int32_t>(bits & 0x7fffffffu) > 0x7f800000;
  return static_cast<std::uint16_t>(is_nan ? quiet : rounded);
}
// What a double is rounded to on its way to 16 bits. The nearest float32 would be rounded once more, to a neighbour of
// the nearest half at times; one that is rounded to odd keeps what the second rounding needs.
constexpr float float_to_round(double x) noexcept {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  if (!(back < x) && !(back > x)) return nearest;  // exact, or NaN
  const bool away = (back < x) == (x < 0);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u)) | 1u);
}
template <class T>
constexpr float float_to_round(T x) noexcept {
  if constexpr (std::is_same_v<T, float>) return x;
  else return float_to_round(static_cast<double>(x));
}
}  // namespace detail

// IEEE's half: 11 bits of precision, up to 65504. Made of a number with one rounding, to nearest even; NaN stays NaN,
// and what is too large is infinite. Becomes a float by itself: what is computed of it is a float.
//   to(i) = float16(2 * from(i));
struct float16 {
  float16() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr explicit float16(T x) noexcept : bits(detail::float_to_half(detail::float_to_round(x))) {}
  static constexpr float16 from_bits(std::uint16_t bits) noexcept { return std::bit_cast<float16>(bits); }
  constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor)
    return detail::half_to_float(bits);
  }

  std::uint16_t bits;
};

// The upper half of a float: 8 bits of precision, and float's range. Otherwise as float16.
struct bfloat16 {
  bfloat16() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr explicit bfloat16(T x) noexcept : bits(detail::float_to_bfloat(detail::float_to_round(x))) {}
  static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept { return std::bit_cast<bfloat16>(bits); }
  constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

  std::uint16_t bits;
};

template <>
struct dtype_of<float16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct dtype_of<bfloat16> {
  static constexpr DType value = DType::kBFloat16;
};

}  // namespace dlbridge
