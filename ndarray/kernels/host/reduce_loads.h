// How the host's reductions read their elements: where they lie, or from where they were fetched to.
#pragma once

#include <algorithm>
#include <cstring>

#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/reduce_lanes.h"

namespace dlbridge::nd::host_kernels {

inline constexpr int kReduceBatch = 16;
inline constexpr std::int64_t kColumnBytes = 64;  // a vector

// n elements, `stride` bytes apart, of each of `count` runs, which are `across` bytes apart: columns where they are
// walked row by row. The position of an element is that of the first plus a multiple of `step`.
struct ReduceRun {
  const char* in;
  std::int64_t stride, n, position, step, count, across;
  bool is_columns;
};

// Lanes to the first, or the first `kLeast` of them: halves are put together.
template <std::int64_t kHalf, std::int64_t kLeast = 1, class L, std::int64_t kCount, class F>
void fold(L (&lane)[kCount], F f) noexcept {
  if constexpr (kHalf >= kLeast) {
    for (std::int64_t k = 0; k < kHalf; ++k) lane[k] = f(lane[k], lane[k + kHalf]);
    fold<kHalf / 2, kLeast>(lane, f);
  }
}

template <class R>
struct Loads {
  using In = typename R::In;
  using Acc = typename R::Acc;
  static constexpr std::int64_t kSize = sizeof(In);
  using Size = std::integral_constant<std::int64_t, kSize>;
  using Alternate = std::integral_constant<std::int64_t, 2 * kSize>;  // a constant, for which there are shuffles

  R functor;
  InnerLoop cast_in;  // null: elements are loaded as they are

  real_t<In> load_part(const char* p, std::int64_t part) const noexcept {
    real_t<In> x;
    std::memcpy(&x, p + part * static_cast<std::int64_t>(sizeof(x)), sizeof(x));
    return functors::prepare(x, functor.prep);
  }
  static In load_as_it_is(const char* p) noexcept {
    In x;
    std::memcpy(&x, p, sizeof(In));
    return x;
  }
  In load(const char* p) const noexcept {
    if constexpr (std::is_same_v<In, bool>)  // any byte that is not 0 is true
      return (*reinterpret_cast<const unsigned char*>(p) != 0) != (functor.prep.flip != 0);
    else if constexpr (std::is_integral_v<In> && (is_extreme_v<R> || is_arg_extreme_v<R>))  // no sign to drop
      return static_cast<In>(load_as_it_is(p) ^ static_cast<In>(functor.prep.flip));
    else if constexpr (is_complex_v<In>) return {load_part(p, 0), load_part(p, 1)};
    else return functors::prepare(load_as_it_is(p), functor.prep);
  }

  // What the k-th lane takes: elements that have several lie side by side.
  auto load_lane(const char* in, std::int64_t stride, std::int64_t k) const noexcept {
    if constexpr (kLaneParts<R> == 1) {
      return load(in + k * stride);
    } else {
      typename Lanes<R>::In x;
      std::memcpy(&x, in + k * static_cast<std::int64_t>(sizeof(x)), sizeof(x));
      return x;
    }
  }

  const char* fetch(const char* in, std::int64_t stride, std::int64_t n, char* buffer) const {
    if (cast_in != nullptr) {
      char* const data[2] = {buffer, const_cast<char*>(in)};
      const std::int64_t strides[2] = {kSize, stride};
      cast_in(data, strides, n);
    } else if (stride == Alternate::value) {
      for (std::int64_t i = 0; i < n; ++i) std::memcpy(buffer + i * kSize, in + i * Alternate::value, kSize);
    } else {
      DLBRIDGE_ND_UNROLL
      for (std::int64_t i = 0; i < n; ++i) std::memcpy(buffer + i * kSize, in + i * stride, kSize);
    }
    return buffer;
  }
};

}  // namespace dlbridge::nd::host_kernels
