// Operations on 16-bit floats that ask or change their bits alone, without the way to float32 and back, on which a
// device drops the sign of a NaN. A NaN that is made of another is quiet, as it is behind that way.
#pragma once

#include "ndarray/kernels/numbers.h"
#include "ndarray/kernels/op_table.h"

namespace dlbridge::nd {

template <Op op, class C>
inline constexpr bool is_of_half_bits =
    is_half_v<C> &&
    (op == Op::kAbsolute || op == Op::kNegative || op == Op::kSignbit || op == Op::kCopysign || op == Op::kNextafter);

template <Op op, class C>
struct HalfBitsFn {
  static constexpr int kSign = 0x8000, kQuiet = std::is_same_v<C, float16> ? 0x0200 : 0x0040;
  static constexpr int kInfinity = std::is_same_v<C, float16> ? 0x7c00 : 0x7f80;

  DLBRIDGE_ND_HD auto operator()(C x) const noexcept {
    if constexpr (op == Op::kSignbit) return (x.bits & kSign) != 0;
    else return of(op == Op::kAbsolute ? x.bits & ~kSign : x.bits ^ kSign);
  }
  DLBRIDGE_ND_HD C operator()(C a, C b) const noexcept {
    const int from_size = a.bits & ~kSign;
    if constexpr (op == Op::kCopysign) {
      return of(from_size | (b.bits & kSign) | (from_size > kInfinity ? kQuiet : 0));
    } else {
      const int to_size = b.bits & ~kSign;
      const int from = (a.bits & kSign) != 0 ? -from_size : from_size, to = (b.bits & kSign) != 0 ? -to_size : to_size;
      const int step = (from < to) == (from > 0) ? a.bits + 1 : a.bits - 1;
      const int next = from == to ? b.bits : from_size == 0 ? (b.bits & kSign) | 1 : step;
      return of(from_size > kInfinity ? a.bits | kQuiet : to_size > kInfinity ? b.bits | kQuiet : next);
    }
  }

 private:
  DLBRIDGE_ND_HD static C of(int bits) noexcept { return C{static_cast<std::uint16_t>(bits)}; }
};

}  // namespace dlbridge::nd
