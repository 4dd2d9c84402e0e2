// Elements as keys and back, many at a time: loops for each kind of key, which the compiler makes vectors of.
#pragma once

#include <cstring>

#include "ndarray/kernels/functors/sort_keys.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {

enum class Coding { kRank, kValue, kFromValue };  // rank_key(), value_key(), from_value_key()

template <class Bits>
Bits bits_at(const char* p) noexcept {
  Bits bits;
  std::memcpy(&bits, p, sizeof(Bits));
  return bits;
}

template <class Bits, Coding coding, functors::KeyKind kind, bool descending>
DLBRIDGE_ND_CLONES void recode_as(const char* in, char* out, std::int64_t n, std::uint64_t infinity) {
  const functors::KeyCode code{kind, descending, infinity};
#if !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < n; ++i) {
    const Bits bits = bits_at<Bits>(in + i * static_cast<std::int64_t>(sizeof(Bits)));
    const Bits coded = coding == Coding::kRank    ? functors::rank_key(bits, code)
                       : coding == Coding::kValue ? functors::value_key(bits, code)
                                                  : functors::from_value_key(bits, code);
    std::memcpy(out + i * static_cast<std::int64_t>(sizeof(Bits)), &coded, sizeof coded);
  }
}

// n elements; `out` may be `in`, and neither need be aligned.
template <class Bits, Coding coding>
void recode(const functors::KeyCode& code, const void* from, void* to, std::int64_t n) {
  using enum functors::KeyKind;
  const char* const in = static_cast<const char*>(from);
  char* const out = static_cast<char*>(to);
  if (code.kind == kFloat && code.descending) recode_as<Bits, coding, kFloat, true>(in, out, n, code.infinity);
  else if (code.kind == kFloat) recode_as<Bits, coding, kFloat, false>(in, out, n, code.infinity);
  else if (code.kind == kSigned && code.descending) recode_as<Bits, coding, kSigned, true>(in, out, n, 0);
  else if (code.kind == kSigned) recode_as<Bits, coding, kSigned, false>(in, out, n, 0);
  else if (code.descending) recode_as<Bits, coding, kUnsigned, true>(in, out, n, 0);
  else if (in != out) std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Bits));
}

// Whether no element is smaller than the one before it, and none is NaN.
template <class T>
DLBRIDGE_ND_CLONES bool in_order(const T* data, std::int64_t n) {
  constexpr std::int64_t kAtOnce = 256;
  for (std::int64_t i = 1; i < n; i += kAtOnce) {
    const std::int64_t end = i + kAtOnce < n ? i + kAtOnce : n;
    std::uint8_t falls = 0;
    for (std::int64_t j = i; j < end; ++j) falls = static_cast<std::uint8_t>(falls | (data[j - 1] <= data[j] ? 0 : 1));
    if (falls != 0) return false;
  }
  return true;
}

}  // namespace dlbridge::nd::host_kernels
