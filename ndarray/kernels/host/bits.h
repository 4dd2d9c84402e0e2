// Bits in bytes, on the host.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// A bit for each of n bytes that is not 0, eight a byte, the first the highest or, `little`, the lowest; zeros at the
// end.
void pack_bits(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept;
// The other way round: eight bytes of 0 and 1 for each of n.
void unpack_bits(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept;

// The middle one of three axes that an array in C order is seen as: n elements, `behind` bytes apart, `before` times.
struct MiddleAxis {
  std::int64_t before, n, behind;
};
// The same along it: (n + 7) / 8 bytes, or `count` bits, of which those behind the last are 0.
void pack_bits_along(const std::uint8_t* x, MiddleAxis axis, bool little, std::uint8_t* out) noexcept;
void unpack_bits_along(const std::uint8_t* x, MiddleAxis axis, std::int64_t count, bool little,
                       std::uint8_t* out) noexcept;

}  // namespace dlbridge::nd::host_kernels
