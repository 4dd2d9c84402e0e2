// Where in a run of elements the largest is, or the first that is true: looked through in vectors.
#pragma once

#include "ndarray/kernels/host/lane_array.h"
#include "ndarray/kernels/host/reduce_loads.h"

namespace dlbridge::nd::host_kernels {

inline constexpr std::int64_t kSearchBytes = 1024;  // that are looked through before it is asked where
inline constexpr std::int64_t kRunBytes = 256;      // some vectors: each waits for itself only
inline constexpr std::int64_t kManyPlaces = 256;    // elements of a row, from which more lanes are worth folding,
inline constexpr std::int64_t kMostPlaces = 2048;   // and up to which its place is looked for with its value

template <class R>
struct Searches : Loads<R> {
  using In = typename R::In;
  using Acc = typename R::Acc;
  using Lane = extreme_lane_t<In>;
  using Loads<R>::functor, Loads<R>::kSize, Loads<R>::load;

  static Lane greater(Lane a, Lane b) noexcept {  // one instruction, which loses NaN
    if constexpr (std::is_integral_v<Lane>) return a < b ? b : a;
    else return a > b ? a : b;
  }

  // The largest of n elements, and whether one may be NaN. Twice is as good as once, so that the last lanes may overlap
  // others. Of floats the lanes are added up, too: a NaN makes one of them, as infinities may do.
  template <std::int64_t kCount>
  bool largest_of_lanes(const char* in, std::int64_t n, Lane& best) const {
    Lane lane[kCount], sum[kCount];
    for (std::int64_t k = 0; k < kCount; ++k) sum[k] = lane[k] = cast<Lane>(load(in + k * kSize));
    for (std::int64_t i = kCount; i < n; i += kCount) {
      const char* const from = in + std::min(i, n - kCount) * kSize;
      DLBRIDGE_ND_UNROLL  // vectors, which stay in registers then
          for (std::int64_t k = 0; k < kCount; ++k) {
        const Lane x = cast<Lane>(load(from + k * kSize));
        lane[k] = greater(lane[k], x);
        if constexpr (std::is_floating_point_v<Lane>) sum[k] += x;
      }
    }
    fold<kCount / 2>(lane, greater);
    best = lane[0];
    if constexpr (std::is_floating_point_v<Lane>) fold<kCount / 2>(sum, [](Lane a, Lane b) { return a + b; });
    return functors::is_nan(sum[0]);
  }
  // The same of complex numbers.
  template <std::int64_t kCount>
    requires is_complex_v<Lane>
  bool largest_of_lanes(const char* in, std::int64_t n, Lane& best) const {
    LaneArray<Lane, kCount> lanes;
    for (std::int64_t k = 0; k < kCount; ++k) lanes.set(k, load(in + k * kSize));
    for (std::int64_t i = kCount; i < n; i += kCount) {
      const char* const from = in + std::min(i, n - kCount) * kSize;
      for (std::int64_t k = 0; k < kCount; ++k) {
        const Lane x = load(from + k * kSize);
        lanes.set_if(lanes.is_below(k, x), k, x);
      }
    }
    best = lanes.get(0);
    for (std::int64_t k = 1; k < kCount; ++k) best = functors::larger(best, lanes.get(k));
    return functors::is_nan(best);
  }

  // The first NaN of n elements, where there is one, and its place; the largest and n where there is none.
  struct Largest {
    Lane value;
    std::int64_t nan;
  };
  Largest largest(const char* in, std::int64_t n) const {
    constexpr std::int64_t kMany = kRunBytes / sizeof(Lane);
    constexpr std::int64_t kFew = std::max<std::int64_t>(kMany / 4, kReduceBatch);
    Lane best = cast<Lane>(load(in));
    bool may_be_nan = functors::is_nan(best);
    if (n >= kMany) {
      may_be_nan = largest_of_lanes<kMany>(in, n, best);
    } else if (n >= kFew) {
      may_be_nan = largest_of_lanes<kFew>(in, n, best);
    } else {
      for (std::int64_t i = 1; i < n; ++i) best = functors::larger(best, cast<Lane>(load(in + i * kSize)));
      may_be_nan = functors::is_nan(best);
    }
    if (!may_be_nan) return {best, n};
    const std::int64_t nan = search_nan(in, n);
    return {nan < n ? cast<Lane>(load(in + nan * kSize)) : best, nan};
  }

  // The largest of few elements and its first place, in one pass: each lane knows where its largest stood. Returns
  // whether one may be NaN, as above; then it says nothing.
  using Place = std::conditional_t<sizeof(Lane) == 8, std::int64_t, std::int32_t>;
  static constexpr bool kKnowPlaces = !is_complex_v<Lane> && sizeof(Lane) >= 4;
  template <std::int64_t kCount>
  bool place_in_lanes(const char* in, std::int64_t n, Lane& best, std::int64_t& place) const {
    constexpr std::int64_t kWidth = std::min<std::int64_t>(kCount, 64 / sizeof(Lane));
    Lane lane[kCount], sum[kCount];
    Place at[kCount];
    for (std::int64_t k = 0; k < kCount; ++k) {
      sum[k] = lane[k] = cast<Lane>(load(in + k * kSize));
      at[k] = static_cast<Place>(k);
    }
    for (std::int64_t i = kCount; i < n; i += kCount) {
      const std::int64_t first = std::min(i, n - kCount);
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kCount; v += kWidth)  // registers, as no loop over them is left
        for (std::int64_t k = v; k < v + kWidth; ++k) {
          const Lane x = cast<Lane>(load(in + (first + k) * kSize));
          at[k] = lane[k] < x ? static_cast<Place>(first + k) : at[k];
          lane[k] = greater(lane[k], x);
          if constexpr (std::is_floating_point_v<Lane>) sum[k] += x;
        }
    }
    Lane folded[kCount];
    std::copy_n(lane, kCount, folded);
    fold<kCount / 2>(folded, greater);
    best = folded[0];
    for (std::int64_t k = 0; k < kCount; ++k) at[k] = lane[k] == best ? at[k] : std::numeric_limits<Place>::max();
    fold<kCount / 2>(at, [](Place a, Place b) { return a < b ? a : b; });
    place = at[0];
    if constexpr (std::is_floating_point_v<Lane>) fold<kCount / 2>(sum, [](Lane a, Lane b) { return a + b; });
    return functors::is_nan(sum[0]);
  }

  // Whether what comes with the value changes nothing.
  template <class Value>
  bool is_passed(Value value, const Acc& acc) const noexcept {
    if (functors::is_nan(value)) return false;
    return functor.ascending ? !functors::less(acc.value, value) : functors::less(value, acc.value);
  }

  // The first of the largest elements, or of those that are NaN: what the largest is, then where. Few runs have
  // something larger than what was found before; of bools nothing is larger than what is true.
  void find_extreme(const char* in, std::int64_t n, std::int64_t position, std::int64_t step, Acc& acc) const {
    constexpr bool is_bool = std::is_same_v<In, bool>;
    if constexpr (kKnowPlaces) {
      Lane found;
      std::int64_t place = 0;
      if (n >= kReduceBatch && n <= kMostPlaces &&
          !(n < kManyPlaces ? place_in_lanes<kReduceBatch>(in, n, found, place)
                            : place_in_lanes<kRunBytes / sizeof(Lane)>(in, n, found, place))) {
        const auto value = cast<typename R::Value>(found);
        if (!is_passed(value, acc)) functor.combine(acc, Acc{value, position + place * step});
        return;
      }
    }
    Largest best{1, n};
    if constexpr (!is_bool) best = largest(in, n);
    const auto value = cast<typename R::Value>(best.value);
    if (is_passed(value, acc)) return;
    std::int64_t i = best.nan;
    if constexpr (is_bool) i = search_truth(in, n, functor.prep.flip == 0);
    else if (i == n) i = search(in, n, [&](const char* p) { return cast<Lane>(load(p)) == best.value; });
    if (i < n) functor.combine(acc, Acc{value, position + i * step});
  }

  std::int64_t search_nan(const char* in, std::int64_t n) const {
    return search(in, n, [&](const char* p) { return functors::is_nan(cast<Lane>(load(p))); });
  }

  // The first element that is true, or the first that is not.
  std::int64_t search_truth(const char* in, std::int64_t n, bool truth) const {
    const auto bits = [&](const char* p) {
      if constexpr (std::is_same_v<In, bool>) return *reinterpret_cast<const unsigned char*>(p);
      else if constexpr (std::is_same_v<In, functors::Bits128>) return load(p).low | load(p).high;
      else return load(p);
    };
    if (truth) return search(in, n, [&](const char* p) { return bits(p) != 0; });
    return search(in, n, [&](const char* p) { return bits(p) == 0; });
  }

  // The place of the first element of which `is` holds; n where it holds of none.
  template <class Is>
  std::int64_t search(const char* in, std::int64_t n, Is is) const {
    constexpr std::int64_t kLong = kSearchBytes / kSize;
    std::int64_t i = 0;
    while (i + kLong <= n && !holds_in<kLong>(in + i * kSize, is)) i += kLong;
    while (i + 2 * kSearched <= n && !holds_in<kSearched>(in + i * kSize, is)) i += kSearched;
    if (i + kSearched <= n) {
      const std::int64_t first = first_of_searched(in + i * kSize, is);
      i += first;
      if (first < kSearched) return i;
    }
    while (i + kReduceBatch <= n && !holds_in<kReduceBatch>(in + i * kSize, is)) i += kReduceBatch;
    while (i < n && !is(in + i * kSize)) ++i;
    return i;
  }
  using Mask = mask_lane_t<In>;
  static constexpr std::int64_t kSearched = 64;
  template <std::int64_t kCount, class Is>
  static bool holds_in(const char* in, Is is) {
    constexpr std::int64_t kWord = 8 / sizeof(Mask);
    constexpr std::int64_t kWidth = std::min<std::int64_t>(kCount, kColumnBytes / sizeof(Mask));
    Mask holds[kWidth];
    for (std::int64_t k = 0; k < kWidth; ++k) {
      Mask any = 0;
      DLBRIDGE_ND_UNROLL
      for (std::int64_t i = 0; i < kCount; i += kWidth)
        any = static_cast<Mask>(any | static_cast<Mask>(is(in + (i + k) * kSize)));
      holds[k] = any;
    }
    fold<kWidth / 2, kWord>(holds, [](Mask a, Mask b) { return static_cast<Mask>(a | b); });
    std::uint64_t word;
    std::memcpy(&word, holds, sizeof(word));
    return word != 0;
  }
  // kSearched where it holds of none.
  template <class Is>
  static std::int64_t first_of_searched(const char* in, Is is) {
    constexpr std::int64_t kWidth = kColumnBytes / sizeof(Mask);
    Mask first[kWidth];
    std::fill_n(first, kWidth, static_cast<Mask>(kSearched));
    for (std::int64_t i = kSearched - kWidth; i >= 0; i -= kWidth)
      for (std::int64_t k = 0; k < kWidth; ++k)
        first[k] = is(in + (i + k) * kSize) ? static_cast<Mask>(i + k) : first[k];
    fold<kWidth / 2>(first, [](Mask a, Mask b) { return a < b ? a : b; });
    return static_cast<std::int64_t>(first[0]);
  }
};

}  // namespace dlbridge::nd::host_kernels
