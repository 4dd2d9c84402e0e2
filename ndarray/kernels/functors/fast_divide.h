// Division by a number known at launch: a multiplication and a shift (Granlund and Montgomery, PLDI 1994).
#pragma once

#include <cstdint>
#include <type_traits>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

// Exact for dividends below 2^(bits - 1). U is std::uint32_t or std::uint64_t.
template <class U>
struct FastDivide {
  U divisor = 1, multiplier = 1;
  std::uint32_t shift = 0;

  FastDivide() = default;
  explicit FastDivide(U d) : divisor(d) {
    constexpr int kBits = sizeof(U) * 8;
    while (shift < kBits - 1 && (U{1} << shift) < d) ++shift;
    __extension__ using Wide = std::conditional_t < sizeof(U) == 4, std::uint64_t, unsigned __int128 > ;
    multiplier = static_cast<U>((Wide{1} << kBits) * ((Wide{1} << shift) - d) / d + 1);
  }
  DLBRIDGE_ND_HD U quotient(U n) const noexcept {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(U) == 4)
      return (__umulhi(multiplier, n) + n) >> shift;
    else
      return (__umul64hi(multiplier, n) + n) >> shift;
#else
    __extension__ using Wide = std::conditional_t < sizeof(U) == 4, std::uint64_t, unsigned __int128 > ;
    return (static_cast<U>((static_cast<Wide>(multiplier) * n) >> (sizeof(U) * 8)) + n) >> shift;
#endif
  }
  // Leaves the quotient in n and returns the remainder.
  DLBRIDGE_ND_HD U split(U& n) const noexcept {
    const U q = quotient(n), remainder = n - q * divisor;
    n = q;
    return remainder;
  }
};

}  // namespace dlbridge::nd
