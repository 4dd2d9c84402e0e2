// Bits in bytes, on the host.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// A bit for each of n bytes that is not 0, eight a byte, the first the highest or, `little`, the lowest; zeros at the
// end.
void pack_bits(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept;
// The other way round: eight bytes of 0 and 1 for each of n.
void unpack_bits(const std::uint8_t* x, std::int64_t n, bool little, std::uint8_t* out) noexcept;

}  // namespace dlbridge::nd::host_kernels
