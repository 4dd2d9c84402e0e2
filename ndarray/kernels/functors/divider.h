// Division of indices by a number known at launch: one high multiplication, one addition, one shift (Granlund and
// Montgomery, PLDI 1994).
#pragma once

#include <cstdint>
#include <type_traits>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

// U is std::uint32_t or std::uint64_t, of `bits` bits. Exact for 0 <= n < 2^(bits - 1) and 1 <= divisor < 2^(bits - 1):
// with 2^shift >= divisor, magic is 2^bits * (2^shift - divisor) / divisor + 1, and n + high(n * magic) cannot
// overflow.
template <class U>
struct BasicDivider {
  U divisor;
  U magic;
  std::uint32_t shift;

  static BasicDivider of(std::int64_t divisor) noexcept {
    const auto d = static_cast<U>(divisor);
    std::uint32_t shift = 0;
    while ((U{1} << shift) < d) ++shift;
    return {d, static_cast<U>((Wide{(U{1} << shift) - d} << kBits) / d + 1), shift};
  }

  DLBRIDGE_ND_HD U quotient(U n) const noexcept {
#if defined(__CUDA_ARCH__)
    if constexpr (kBits == 32) return (__umulhi(n, magic) + n) >> shift;
    else return (__umul64hi(n, magic) + n) >> shift;
#else
    return (static_cast<U>((Wide{n} * magic) >> kBits) + n) >> shift;
#endif
  }

  // Leaves the quotient in n and returns the remainder.
  DLBRIDGE_ND_HD U split(U& n) const noexcept {
    const U q = quotient(n), remainder = n - q * divisor;
    n = q;
    return remainder;
  }

 private:
  static constexpr int kBits = sizeof(U) * 8;
  __extension__ typedef unsigned __int128 Wide64;  // `using` takes no __extension__
  using Wide = std::conditional_t<kBits == 32, std::uint64_t, Wide64>;
};

using Divider = BasicDivider<std::uint32_t>;
using Divider64 = BasicDivider<std::uint64_t>;

}  // namespace dlbridge::nd
