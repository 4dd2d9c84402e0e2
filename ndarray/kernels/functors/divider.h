// Division of loop indices by a run-time constant: one high multiplication, one addition, one shift.
#pragma once

#include <cstdint>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

// Exact for 0 <= n < 2^31 and 1 <= divisor < 2^31: with 2^shift >= divisor, magic is 2^32 * (2^shift - divisor) /
// divisor + 1, and n + high(n * magic) cannot overflow 32 bits.
struct Divider {
  std::uint32_t divisor;
  std::uint32_t magic;
  std::uint32_t shift;

  static Divider of(std::int64_t divisor) noexcept {
    const auto d = static_cast<std::uint64_t>(divisor);
    std::uint32_t shift = 0;
    while ((std::uint64_t{1} << shift) < d) ++shift;
    const std::uint64_t magic = ((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - d)) / d + 1;
    return {static_cast<std::uint32_t>(d), static_cast<std::uint32_t>(magic), shift};
  }

  DLBRIDGE_ND_HD std::uint32_t quotient(std::uint32_t n) const noexcept {
#if defined(__CUDA_ARCH__)
    return (__umulhi(n, magic) + n) >> shift;
#else
    const auto high = static_cast<std::uint32_t>((std::uint64_t{n} * magic) >> 32);
    return (high + n) >> shift;
#endif
  }
};

}  // namespace dlbridge::nd
