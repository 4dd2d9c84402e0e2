// What accumulates side by side, one a lane of a vector, in a short run of elements or in the columns of a few rows: an
// accumulator of the functor, or something narrower that so few elements cannot overflow.
#pragma once

#include <algorithm>

#include "ndarray/kernels/functors/reduce.h"

namespace dlbridge::nd::host_kernels {

template <class T>
inline constexpr bool is_small_integer_v = std::is_integral_v<T> && sizeof(T) <= 2;

// Extremes of small integers are such; what is true is 1.
template <class T>
using extreme_lane_t = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t,
                                          std::conditional_t<is_small_integer_v<T>, T, functors::order_t<T>>>;
template <class T>
using Extreme = functors::ExtremeIn<T, extreme_lane_t<T>>;

// any and all: whether there is an element that decides, a true one or one that is not. One is enough, so that long
// rows need not be read to their ends, and a byte holds it.
template <class Bits>
struct Truth : functors::Reduction {
  using In = Bits;
  using Acc = std::uint8_t;
  bool decides(In x) const noexcept { return functors::Count<Bits>::nonzero(x) != (op == ReduceOp::kAll); }
  static Acc identity() noexcept { return 0; }
  void add(Acc& acc, In x, std::int64_t) const noexcept { acc = static_cast<Acc>(acc | (decides(x) ? 1 : 0)); }
  template <int N, class Positions>
  void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    for (int i = 0; i < N; ++i) add(acc, x[i], 0);
  }
  static void combine(Acc& acc, Acc other) noexcept { acc = static_cast<Acc>(acc | other); }
  void store(Acc acc, void* out_address) const noexcept {
    *static_cast<bool*>(out_address) = (acc != 0) != (op == ReduceOp::kAll);
  }
};

template <class R>
inline constexpr bool is_truth_v = false;
template <class Bits>
inline constexpr bool is_truth_v<Truth<Bits>> = true;
template <class R>
inline constexpr bool is_extreme_v = false;
template <class T>
inline constexpr bool is_extreme_v<Extreme<T>> = true;

// argmax and argmin: what the largest is comes first, then where. On the host so it is for complex numbers, too.
template <class R>
inline constexpr bool is_arg_extreme_v = false;
template <class T>
inline constexpr bool is_arg_extreme_v<functors::ArgExtreme<T>> = true;

template <class R>
inline constexpr bool is_moments_v = false;
template <class T>
inline constexpr bool is_moments_v<functors::Moments<T>> = !is_complex_v<T>;

template <class R>
struct Lanes {
  using Type = typename R::Acc;  // of a run
  using Column = Type;           // of kColumnLeaf rows
  using In = typename R::In;     // of what is added to a lane
  // Functors without positions and without a count to share.
  static constexpr bool exist = std::is_arithmetic_v<Type> || is_complex_v<Type>;
  static Type identity(const R& functor) noexcept { return functor.identity(); }
  static void add(const R& functor, Type& lane, In x) noexcept { functor.add(lane, x, 0); }
  static void merge(const R& functor, Type& lane, Type other) noexcept { functor.combine(lane, other); }
  static void finish(const R& functor, typename R::Acc& acc, const Type* lane) noexcept { functor.combine(acc, *lane); }
};

// Lanes as wide as an element is read: a comparison of elements is a mask of as many bits.
template <class Bits>
using mask_lane_t = functors::bits_t<sizeof(Bits)>;

// 32 bits count the elements of a run, and hold the sum of 16-bit ones: a lane takes 1,024 of them at the most.
template <class Bits>
struct Lanes<functors::Count<Bits>> {
  using R = functors::Count<Bits>;
  using In = Bits;
  using Type = std::int32_t;
  using Column = mask_lane_t<Bits>;
  static constexpr bool exist = true;
  static Type identity(const R&) noexcept { return 0; }
  template <class Lane>
  static void add(const R&, Lane& lane, Bits x) noexcept {
    lane = static_cast<Lane>(lane + static_cast<Lane>(R::nonzero(x)));
  }
  static void merge(const R&, Type& lane, Type other) noexcept { lane += other; }
  template <class Lane>
  static void finish(const R&, typename R::Acc& acc, const Lane* lane) noexcept {
    acc += *lane;
  }
};
template <class T>
  requires is_small_integer_v<T>
struct Lanes<functors::Sum<T>> {
  using R = functors::Sum<T>;
  using In = T;
  using Type = std::int32_t;
  using Column = Type;
  static constexpr bool exist = true;
  static Type identity(const R&) noexcept { return 0; }
  static void add(const R&, Type& lane, T x) noexcept { lane += x; }
  static void merge(const R&, Type& lane, Type other) noexcept { lane += other; }
  static void finish(const R&, typename R::Acc& acc, const Type* lane) noexcept { acc += *lane; }
};
// Complex numbers are added part by part: a lane for each part.
template <class T>
  requires is_complex_v<T>
struct Lanes<functors::Sum<T>> {
  using R = functors::Sum<T>;
  using In = real_t<T>;
  using Type = In;
  using Column = Type;
  static constexpr bool exist = true;
  static Type identity(const R&) noexcept { return 0; }
  static void add(const R&, Type& lane, In x) noexcept { lane += x; }
  static void merge(const R&, Type& lane, Type other) noexcept { lane += other; }
  static void finish(const R&, T& acc, const Type* lane) noexcept { acc += T(lane[0], lane[1]); }
};
template <class Bits>
struct Lanes<Truth<Bits>> {
  using R = Truth<Bits>;
  using In = Bits;
  using Column = mask_lane_t<Bits>;
  static constexpr bool exist = true;
  static Column identity(const R&) noexcept { return 0; }
  static void add(const R& functor, Column& lane, Bits x) noexcept {
    lane = static_cast<Column>(lane | static_cast<Column>(functor.decides(x)));
  }
  static void finish(const R&, typename R::Acc& acc, const Column* lane) noexcept {
    acc = static_cast<typename R::Acc>(acc | *lane);  // 0 or 1
  }
};

template <class R>
inline constexpr bool is_count_v = false;
template <class Bits>
inline constexpr bool is_count_v<functors::Count<Bits>> = true;

// Reductions that round nothing, in whatever order.
template <class R>
inline constexpr bool is_exact_v = is_arg_extreme_v<R> || is_count_v<R> || is_truth_v<R> || is_extreme_v<R>;
template <class T>
inline constexpr bool is_exact_v<functors::Sum<T>> = std::is_integral_v<T>;
template <class T>
inline constexpr bool is_exact_v<functors::Prod<T>> = std::is_integral_v<T>;

// Whether the first elements may decide.
template <class R>
inline constexpr bool stops_early_v = is_truth_v<R> || std::is_same_v<typename R::In, bool>;

// Whether nothing that follows can change the result.
template <class R>
bool is_decided(const R& functor, const typename R::Acc& acc) noexcept {
  if constexpr (is_truth_v<R>) {
    return acc != 0;
  } else if constexpr (is_arg_extreme_v<R>) {
    using T = typename R::In;
    if (!functor.ascending) return false;
    if constexpr (std::is_integral_v<T>) return acc.value == std::numeric_limits<T>::max();
    else return functors::is_nan(acc.value);
  } else {
    return false;
  }
}

// How many lanes an element has.
template <class R>
inline constexpr int kLaneParts = sizeof(typename R::In) / sizeof(typename Lanes<R>::In);
template <class R>
inline constexpr int kLaneCount = std::max(16 / kLaneParts<R>, 64 / static_cast<int>(sizeof(typename Lanes<R>::Type)));
// The same for long runs: 256 bytes, half of AVX2's registers.
template <class R>
inline constexpr int kManyLanes =
    std::max(kLaneCount<R>, 256 / kLaneParts<R> / static_cast<int>(sizeof(typename Lanes<R>::Type)));

}  // namespace dlbridge::nd::host_kernels
