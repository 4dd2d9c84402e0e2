// What accumulates side by side in a short run, one a lane of a vector: an accumulator of the functor, or something
// narrower that a run cannot overflow.
#pragma once

#include <algorithm>

#include "ndarray/kernels/functors/reduce.h"

namespace dlbridge::nd::host_kernels {

template <class T>
inline constexpr bool is_small_integer_v = std::is_integral_v<T> && sizeof(T) <= 2;

template <class R>
struct Lanes {
  using In = typename R::In;
  using Type = typename R::Acc;
  // Functors without positions and without a count to share.
  static constexpr bool exist = std::is_arithmetic_v<Type> || is_complex_v<Type>;
  static Type identity(const R& functor) noexcept { return functor.identity(); }
  static void add(const R& functor, Type& lane, In x) noexcept { functor.add(lane, x, 0); }
  static void merge(const R& functor, Type& lane, Type other) noexcept { functor.combine(lane, other); }
  static void finish(const R& functor, typename R::Acc& acc, Type lane) noexcept { functor.combine(acc, lane); }
};

// 32 bits count the elements of a run, and hold the sum of 16-bit ones: a lane takes 1,024 of them at the most.
template <class Bits>
struct Lanes<functors::Count<Bits>> {
  using R = functors::Count<Bits>;
  using Type = std::int32_t;
  static constexpr bool exist = true;
  static Type identity(const R&) noexcept { return 0; }
  static void add(const R&, Type& lane, Bits x) noexcept { lane += R::nonzero(x); }
  static void merge(const R&, Type& lane, Type other) noexcept { lane += other; }
  static void finish(const R&, typename R::Acc& acc, Type lane) noexcept { acc += lane; }
};
template <class T>
  requires is_small_integer_v<T>
struct Lanes<functors::Sum<T>> {
  using R = functors::Sum<T>;
  using Type = std::int32_t;
  static constexpr bool exist = true;
  static Type identity(const R&) noexcept { return 0; }
  static void add(const R&, Type& lane, T x) noexcept { lane += x; }
  static void merge(const R&, Type& lane, Type other) noexcept { lane += other; }
  static void finish(const R&, typename R::Acc& acc, Type lane) noexcept { acc += lane; }
};

// Extremes of small integers are such.
template <class T>
using extreme_lane_t = std::conditional_t<is_small_integer_v<T>, T, functors::order_t<T>>;
template <class T>
struct Lanes<functors::Extreme<T>> {
  using R = functors::Extreme<T>;
  using Type = extreme_lane_t<T>;
  static constexpr bool exist = true;
  static Type identity(const R&) noexcept { return functors::lowest<Type>(); }
  static void add(const R&, Type& lane, T x) noexcept { lane = functors::larger(lane, cast<Type>(x)); }
  static void merge(const R&, Type& lane, Type other) noexcept { lane = functors::larger(lane, other); }
  static void finish(const R& functor, typename R::Acc& acc, Type lane) noexcept {
    functor.combine(acc, cast<typename R::Acc>(lane));
  }
};

template <class R>
inline constexpr bool is_count_v = false;
template <class Bits>
inline constexpr bool is_count_v<functors::Count<Bits>> = true;

// Reductions that round nothing, in whatever order.
template <class R>
inline constexpr bool is_exact_v = R::kFindsLater || is_count_v<R>;
template <class T>
inline constexpr bool is_exact_v<functors::Extreme<T>> = true;
template <class T>
inline constexpr bool is_exact_v<functors::Sum<T>> = std::is_integral_v<T>;
template <class T>
inline constexpr bool is_exact_v<functors::Prod<T>> = std::is_integral_v<T>;

template <class R>
inline constexpr int kLaneCount = std::max(16, 64 / static_cast<int>(sizeof(typename Lanes<R>::Type)));

}  // namespace dlbridge::nd::host_kernels
