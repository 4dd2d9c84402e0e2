// max, min, argmax and argmin.
#pragma once

#include "ndarray/kernels/functors/reduction.h"

namespace dlbridge::nd::functors {

// Values that max and argmax compare: 16-bit floats as float, small integers in 32 bits (a shuffle's word).
template <class T>
using order_t = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4,
                                   std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>, arith_t<T>>;

template <class T>
DLBRIDGE_ND_HD constexpr T lowest() noexcept {
  if constexpr (is_complex_v<T>) return T(lowest<real_t<T>>(), lowest<real_t<T>>());
  else if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  else return std::numeric_limits<T>::lowest();
}

// The larger of two; NaN if either is NaN.
template <class T>
DLBRIDGE_ND_HD inline T larger(T a, T b) noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
  if constexpr (std::is_integral_v<T>) return a < b ? b : a;
  else if constexpr (is_complex_v<T>) return is_nan(a) || (!is_nan(b) && less(b, a)) ? a : b;
  else return static_cast<bool>((b < a) | (a != a)) ? a : b;  // without branches; a comparison with NaN is false
}

// max, min, and the infinity norms of real dtypes; a functor for each sign would double the code.
template <class T, class Order>
struct ExtremeIn : Reduction {
  using In = T;
  using Acc = Order;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return lowest<Acc>(); }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept { acc = larger(acc, cast<Acc>(x)); }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    Acc values[N];
    DLBRIDGE_ND_UNROLL
    for (int i = 0; i < N; ++i) values[i] = cast<Acc>(x[i]);
    // A lambda: as a pointer to larger() it would be called, not inlined (measured on an H200: a third of the speed).
    acc = larger(acc, tree(values, [](Acc a, Acc b) { return larger(a, b); }));
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc = larger(acc, other); }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    const In value = prepare(cast<In>(acc), BitPrep{~std::uint64_t{0}, prep.flip});
    if constexpr (is_float_v<In>) store_real(cast<Acc>(value), out_address, out);
    else store_value(value, out_address);
  }
};
template <class T>
using Extreme = ExtremeIn<T, order_t<T>>;

// argmax and argmin. Over most of the data the largest value alone is followed: improves() says whether a batch has a
// larger one than seen so far, the engine notes which batch that was, and gives the last one noted to add_batch() in
// the end, which finds the element. That takes positions that ascend, so that of equal elements the first one is found;
// where they do not, add_batch() sees every batch.
template <class T>
struct ArgExtreme : Reduction {
  static constexpr bool kFindsLater = !is_complex_v<T>;
  using In = T;
  using Value = order_t<T>;
  struct Acc {
    Value value;
    std::int64_t position;
  };
  DLBRIDGE_ND_HD Acc identity() const noexcept { return {lowest<Value>(), std::numeric_limits<std::int64_t>::max()}; }
  // The first NaN, else the first of the largest.
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept {
    const bool nan = is_nan(acc.value), other_nan = is_nan(other.value);
    const bool first = other.position < acc.position;
    const bool tie = nan ? other_nan : !other_nan && !less(other.value, acc.value) && !less(acc.value, other.value);
    if (tie ? first : other_nan || (!nan && less(acc.value, other.value))) acc = other;
  }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t position) const noexcept {
    combine(acc, Acc{cast<Value>(x), position});
  }
  template <int N>
  DLBRIDGE_ND_HD static Value largest(const In (&x)[N]) noexcept {
    Value values[N];
    DLBRIDGE_ND_UNROLL
    for (int i = 0; i < N; ++i) values[i] = cast<Value>(x[i]);
    return tree(values, [](Value a, Value b) { return larger(a, b); });
  }
  // Whether the batch holds something larger than `seen`, or the first NaN; `seen` is that then. Elements that are all
  // the lowest improve nothing: see store().
  template <int N>
  DLBRIDGE_ND_HD bool improves(Value& seen, const In (&x)[N]) const noexcept {
    const Value best = largest(x);
    const bool better = !(best <= seen) && !is_nan(seen);
    seen = better ? best : seen;
    return better;
  }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions position) const noexcept {
    if constexpr (is_complex_v<T>) {
      for (int i = 0; i < N; ++i) add(acc, x[i], position(i));
    } else {
      const Value best = largest(x);
      if (ascending ? best <= acc.value : best < acc.value) return;  // an equal one comes later where positions ascend
      unsigned where = 0;                                            // the elements that are the largest, or NaN
      DLBRIDGE_ND_UNROLL
      for (int i = 0; i < N; ++i) {
        const Value value = cast<Value>(x[i]);
        where |= value == best || is_nan(value) ? 1u << i : 0u;
      }
      combine(acc, Acc{best, first_position<N>(where, position)});
    }
  }
  // The smallest position of those marked.
  template <int N, class Positions>
  DLBRIDGE_ND_HD std::int64_t first_position(unsigned where, Positions position) const noexcept {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
#if defined(__CUDACC__)
#pragma unroll 1
#endif
    for (int i = 0; i < N; ++i) {
      if ((where >> i & 1u) == 0) continue;
      const std::int64_t here = position(i);
      first = here < first ? here : first;
      if (ascending) break;
    }
    return first;
  }
  // A largest that is the lowest of all values is every element's, the first one's too.
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    *static_cast<std::int64_t*>(out_address) = acc.value == lowest<Value>() ? 0 : acc.position;
  }
};

}  // namespace dlbridge::nd::functors
