// Operations on four bytes in a 32-bit word at once: elements of a byte would each cost what a word does, and
// arithmetic, not memory, would be the limit (int8 additions on an H200: 3,890 GB/s byte by byte, 4,380 in words).
//
// PackedBytes<OpFn<op, C>>::apply(words…) does to each byte what the functor does to an element. Signed and unsigned
// integers share the unsigned functor (canonical.h); a byte of a bool is true if it is not 0, and a result is 0 or 1.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ndarray/kernels/functors/op_functors.h"

namespace dlbridge::nd {

template <class F>
struct PackedBytes : std::false_type {};

template <class F>
inline constexpr bool has_packed_bytes = PackedBytes<F>::value;

namespace packed {
inline constexpr std::uint32_t kHigh = 0x80808080u, kLow = 0x7f7f7f7fu, kOnes = 0x01010101u;

// 1 in each byte that is not 0: adding to the low seven bits carries into the high one.
DLBRIDGE_ND_HD inline std::uint32_t truth(std::uint32_t x) noexcept { return ((((x & kLow) + kLow) | x) & kHigh) >> 7; }
// No carry leaves a byte: the high bits are added apart.
DLBRIDGE_ND_HD inline std::uint32_t add(std::uint32_t a, std::uint32_t b) noexcept {
  return ((a & kLow) + (b & kLow)) ^ ((a ^ b) & kHigh);
}
// No borrow leaves a byte: the high bits of a are set first.
DLBRIDGE_ND_HD inline std::uint32_t subtract(std::uint32_t a, std::uint32_t b) noexcept {
  return ((a | kHigh) - (b & kLow)) ^ (~(a ^ b) & kHigh);
}
}  // namespace packed

#define DLBRIDGE_ND_PACKED_UNARY(op, C, expression)                                            \
  template <>                                                                                  \
  struct PackedBytes<OpFn<Op::op, C>> : std::true_type {                                       \
    DLBRIDGE_ND_HD static std::uint32_t apply(std::uint32_t x) noexcept { return expression; } \
  };
#define DLBRIDGE_ND_PACKED_BINARY(op, C, expression)                                                            \
  template <>                                                                                                   \
  struct PackedBytes<OpFn<Op::op, C>> : std::true_type {                                                        \
    DLBRIDGE_ND_HD static std::uint32_t apply(std::uint32_t a, std::uint32_t b) noexcept { return expression; } \
  };

DLBRIDGE_ND_PACKED_UNARY(kNegative, std::uint8_t, packed::subtract(0, x))
DLBRIDGE_ND_PACKED_UNARY(kInvert, std::uint8_t, ~x)
DLBRIDGE_ND_PACKED_BINARY(kAdd, std::uint8_t, packed::add(a, b))
DLBRIDGE_ND_PACKED_BINARY(kSubtract, std::uint8_t, packed::subtract(a, b))
DLBRIDGE_ND_PACKED_BINARY(kBitwiseAnd, std::uint8_t, a& b)
DLBRIDGE_ND_PACKED_BINARY(kBitwiseOr, std::uint8_t, a | b)
DLBRIDGE_ND_PACKED_BINARY(kBitwiseXor, std::uint8_t, a ^ b)
DLBRIDGE_ND_PACKED_UNARY(kLogicalNot, std::uint8_t, packed::truth(x) ^ packed::kOnes)
DLBRIDGE_ND_PACKED_BINARY(kEqual, std::uint8_t, packed::truth(a ^ b) ^ packed::kOnes)
DLBRIDGE_ND_PACKED_BINARY(kNotEqual, std::uint8_t, packed::truth(a ^ b))
DLBRIDGE_ND_PACKED_BINARY(kLogicalAnd, std::uint8_t, packed::truth(a) & packed::truth(b))
DLBRIDGE_ND_PACKED_BINARY(kLogicalOr, std::uint8_t, packed::truth(a | b))
DLBRIDGE_ND_PACKED_BINARY(kLogicalXor, std::uint8_t, packed::truth(a) ^ packed::truth(b))
DLBRIDGE_ND_PACKED_UNARY(kLogicalNot, bool, packed::truth(x) ^ packed::kOnes)
DLBRIDGE_ND_PACKED_BINARY(kLogicalAnd, bool, packed::truth(a) & packed::truth(b))
DLBRIDGE_ND_PACKED_BINARY(kLogicalOr, bool, packed::truth(a | b))
DLBRIDGE_ND_PACKED_BINARY(kLogicalXor, bool, packed::truth(a) ^ packed::truth(b))

#undef DLBRIDGE_ND_PACKED_UNARY
#undef DLBRIDGE_ND_PACKED_BINARY

}  // namespace dlbridge::nd
