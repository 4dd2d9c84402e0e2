// The order of sort and search: numbers ascending, NaN after all of them, complex numbers lexicographically. Written
// once, as keys: unsigned integers whose order is the dtype's, for radix and merge sorts and for binary searches, on
// host and device.
#pragma once

#include <cstdint>

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd::functors {

template <class Bits>
inline constexpr Bits kTopBit = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
template <class Bits>
inline constexpr Bits kAllOnes = static_cast<Bits>(~Bits{0});

// Maps an IEEE format's bits so that unsigned order is its total order: -NaN, -inf … -0, +0 … inf, NaN.
template <class Bits>
DLBRIDGE_ND_HD constexpr Bits total_order(Bits bits) noexcept {
  return static_cast<Bits>(bits ^ ((bits & kTopBit<Bits>) != 0 ? kAllOnes<Bits> : kTopBit<Bits>));
}
template <class Bits>
DLBRIDGE_ND_HD constexpr Bits from_total_order(Bits key) noexcept {
  return static_cast<Bits>(key ^ ((key & kTopBit<Bits>) != 0 ? kTopBit<Bits> : kAllOnes<Bits>));
}

// How a real dtype's bits become a key of the same width.
enum class KeyKind : std::uint8_t { kUnsigned, kSigned, kFloat };
struct KeyCode {
  KeyKind kind;
  bool descending;
  std::uint64_t infinity;  // the format's bits of +inf
};

constexpr KeyCode key_code(DType dtype, bool descending) noexcept {
  switch (dtype) {
    case DType::kFloat16: return {KeyKind::kFloat, descending, 0x7c00u};
    case DType::kBFloat16: return {KeyKind::kFloat, descending, 0x7f80u};
    case DType::kFloat32:
    case DType::kComplex64: return {KeyKind::kFloat, descending, 0x7f800000u};
    case DType::kFloat64:
    case DType::kComplex128: return {KeyKind::kFloat, descending, 0x7ff0000000000000u};
    default: return {contains(kSignedSet, dtype) ? KeyKind::kSigned : KeyKind::kUnsigned, descending, 0};
  }
}

template <class Bits>
DLBRIDGE_ND_HD constexpr bool is_nan_bits(Bits bits, const KeyCode& code) noexcept {
  return static_cast<Bits>(bits & ~kTopBit<Bits>) > static_cast<Bits>(code.infinity);
}

// Equal elements have equal keys (-0 and +0; all NaN, which come last): what a stable order of positions needs.
template <class Bits>
DLBRIDGE_ND_HD constexpr Bits rank_key(Bits bits, const KeyCode& code) noexcept {
  if (code.kind == KeyKind::kFloat) {
    if (is_nan_bits(bits, code)) return kAllOnes<Bits>;
    bits = total_order(bits == kTopBit<Bits> ? Bits{0} : bits);
  } else if (code.kind == KeyKind::kSigned) {
    bits = static_cast<Bits>(bits ^ kTopBit<Bits>);
  }
  return code.descending ? static_cast<Bits>(~bits) : bits;
}

// One key an element and back, NaN last: what a sort of values alone needs. Numbers keep their order with the sign
// flipped for a descending sort; the NaN of negative sign, first in the total order, are rotated to the end.
template <class Bits>
DLBRIDGE_ND_HD constexpr Bits value_key(Bits bits, const KeyCode& code) noexcept {
  if (code.kind == KeyKind::kFloat) {
    if (code.descending) bits = static_cast<Bits>(bits ^ kTopBit<Bits>);
    const Bits negative_nans = static_cast<Bits>((kTopBit<Bits> - 1) - static_cast<Bits>(code.infinity));
    return static_cast<Bits>(total_order(bits) - negative_nans);
  }
  if (code.kind == KeyKind::kSigned) bits = static_cast<Bits>(bits ^ kTopBit<Bits>);
  return code.descending ? static_cast<Bits>(~bits) : bits;
}
template <class Bits>
DLBRIDGE_ND_HD constexpr Bits from_value_key(Bits key, const KeyCode& code) noexcept {
  if (code.kind == KeyKind::kFloat) {
    const Bits negative_nans = static_cast<Bits>((kTopBit<Bits> - 1) - static_cast<Bits>(code.infinity));
    const Bits bits = from_total_order(static_cast<Bits>(key + negative_nans));
    return code.descending ? static_cast<Bits>(bits ^ kTopBit<Bits>) : bits;
  }
  if (code.descending) key = static_cast<Bits>(~key);
  return code.kind == KeyKind::kSigned ? static_cast<Bits>(key ^ kTopBit<Bits>) : key;
}

// A complex number's key, lexicographic. NumPy's order of what has NaN: in the imaginary part, in the real part, in
// both, each sorted by the part that is a number; the three high words are free above +inf's.
template <class Bits>
struct ComplexKey {
  Bits high, low;

  DLBRIDGE_ND_HD friend constexpr bool operator<(const ComplexKey& a, const ComplexKey& b) noexcept {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};
template <class Bits>
DLBRIDGE_ND_HD constexpr ComplexKey<Bits> rank_key(Bits real, Bits imaginary, const KeyCode& code) noexcept {
  const bool real_nan = is_nan_bits(real, code), imaginary_nan = is_nan_bits(imaginary, code);
  const Bits real_key = rank_key(real, code), imaginary_key = rank_key(imaginary, code);
  if (!real_nan && !imaginary_nan) return {real_key, imaginary_key};
  const Bits group = static_cast<Bits>((real_nan ? 2 : 0) + (imaginary_nan ? 1 : 0));  // 1, 2, 3
  return {static_cast<Bits>(kAllOnes<Bits> - 3 + group), real_nan ? imaginary_key : real_key};
}

// The ascending key of a value.
template <class T>
DLBRIDGE_ND_HD constexpr auto order_key(T value) noexcept {
  constexpr KeyCode code = key_code(dtype_of_native<T>::value, false);
  constexpr std::size_t kBytes = sizeof(real_t<T>);
  using Narrow = std::conditional_t<kBytes == 1, std::uint8_t, std::uint16_t>;
  using Wide = std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>;
  using Bits = std::conditional_t<kBytes <= 2, Narrow, Wide>;
  if constexpr (is_complex_v<T>)
    return rank_key(__builtin_bit_cast(Bits, value.real()), __builtin_bit_cast(Bits, value.imag()), code);
  else return rank_key(__builtin_bit_cast(Bits, value), code);
}

}  // namespace dlbridge::nd::functors
