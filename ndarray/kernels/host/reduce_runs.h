// Runs of elements, where the time of the host's reductions goes: loops that become vectors of whatever width the
// machine has. What a run gives depends on its length and strides alone.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/lane_array.h"
#include "ndarray/kernels/host/reduce_lanes.h"

namespace dlbridge::nd::host_kernels {

inline constexpr int kReduceBatch = 16;
inline constexpr std::int64_t kColumnLeaf = 128;     // rows, where columns are side by side
inline constexpr std::int64_t kColumnRows = 8;       // of these that are read together
inline constexpr std::int64_t kColumnBytes = 64;     // a vector
inline constexpr std::int64_t kCastRows = 32;        // that are cast before they are reduced,
inline constexpr std::int64_t kCastRowBytes = 1024;  // and how much of each: a cache holds them
inline constexpr std::int64_t kReduceLeaf = 1024;    // elements that one accumulator takes in sequence
inline constexpr std::int64_t kExactLeaf = 16384;    // the same where nothing is rounded
inline constexpr std::int64_t kLongBytes = 65536;    // the same where nothing is added up
inline constexpr std::int64_t kFirstFetched = 32;    // elements, where the first may decide
inline constexpr std::int64_t kByteLanes = 64;       // counters of single bytes
inline constexpr std::int64_t kSearchBytes = 1024;   // that are looked through before it is asked where
inline constexpr std::int64_t kRunBytes = 256;       // some vectors: each waits for itself only

template <class R>
inline constexpr bool has_columns_v = Lanes<R>::exist || is_arg_extreme_v<R>;
// Complex numbers that lie apart fill no vector that a copy of them would not fill as well, unless they are compared.
template <class R>
inline constexpr bool is_read_apart_v = is_complex_v<typename R::In> && !is_extreme_v<R> && !is_arg_extreme_v<R>;
// Sums and the like of numbers that a vector holds several of.
template <class R>
inline constexpr bool has_alternate_v = Lanes<R>::exist && kLaneParts<R> == 1 && !is_extreme_v<R> && !is_truth_v<R> &&
                                        !is_count_v<R> && !is_arg_extreme_v<R> && sizeof(typename R::In) >= 4;
// Columns that are in registers together, of those that are walked together.
template <class R>
inline constexpr std::int64_t kTileColumns =
    std::max<std::int64_t>(kReduceBatch, kColumnBytes / static_cast<std::int64_t>(sizeof(typename R::In)));
template <class R>
inline constexpr std::int64_t kMostColumns =
    has_columns_v<R> ? std::clamp<std::int64_t>(4096 / sizeof(typename R::Acc), 512, 2048) : 128;

// n elements, `stride` bytes apart, of each of `count` runs, which are `across` bytes apart: columns where they are
// walked row by row. The position of an element is that of the first plus a multiple of `step`.
struct ReduceRun {
  const char* in;
  std::int64_t stride, n, position, step, count, across;
  bool is_columns;
};

template <class R>
struct Runs {
  using In = typename R::In;
  using Acc = typename R::Acc;
  static constexpr std::int64_t kSize = sizeof(In);
  using Size = std::integral_constant<std::int64_t, kSize>;

  R functor;
  InnerLoop cast_in;  // null: elements are loaded as they are

  void reduce(const ReduceRun& run, Acc* acc) const {
    if (run.is_columns) return cast_in == nullptr ? reduce_columns(run, acc) : cast_columns(run, acc);
    // Elements that lie apart, or are to be cast, are fetched: one loop serves all.
    alignas(64) char buffer[static_cast<std::size_t>(kReduceLeaf * kSize)];
    if constexpr (has_alternate_v<R>)
      if (cast_in == nullptr && run.stride == Alternate::value) return alternate(run, acc);
    const bool fetches = cast_in != nullptr || (run.stride != kSize && !is_read_apart_v<R>);
    for (std::int64_t c = 0; c < run.count; ++c) {
      std::int64_t length = !fetches ? run.n : stops_early_v<R> ? kFirstFetched : kReduceLeaf;
      for (std::int64_t i = 0; i < run.n && !is_decided(functor, acc[c]); i += length) {
        if (i > 0) length = kReduceLeaf;
        const char* in = run.in + c * run.across + i * run.stride;
        const std::int64_t n = std::min(length, run.n - i);
        if (fetches) in = fetch(in, run.stride, n, buffer);
        const std::int64_t position = run.position + i * run.step;
        if constexpr (is_read_apart_v<R>)
          if (!fetches && run.stride != kSize) {
            elements(in, run.stride, n, position, run.step, acc[c]);
            continue;
          }
        elements(in, Size(), n, position, run.step, acc[c]);
      }
    }
  }

 private:
  void reduce_columns(const ReduceRun& run, Acc* acc) const {
    if constexpr (is_arg_extreme_v<R> || (is_extreme_v<R> && is_complex_v<In>)) extremes_of_columns(run, acc);
    else if constexpr (has_columns_v<R>) columns(run, acc);
    else batches_of_columns(run, acc);
  }
  // Some columns of some rows at a time, cast to where they are dense.
  void cast_columns(const ReduceRun& run, Acc* acc) const {
    constexpr std::int64_t kWide = kCastRowBytes / kSize;
    alignas(64) char buffer[static_cast<std::size_t>(kCastRows * kCastRowBytes)];
    for (std::int64_t row = 0; row < run.n; row += kCastRows)
      for (std::int64_t c = 0; c < run.count; c += kWide) {
        const std::int64_t rows = std::min(kCastRows, run.n - row), wide = std::min(kWide, run.count - c);
        const std::int64_t strides[2] = {kSize, run.across};
        for (std::int64_t r = 0; r < rows; ++r) {
          char* const data[2] = {buffer + r * wide * kSize,
                                 const_cast<char*>(run.in) + (row + r) * run.stride + c * run.across};
          cast_in(data, strides, wide);
        }
        reduce_columns({buffer, wide * kSize, rows, run.position + row * run.step, run.step, wide, kSize, true},
                       acc + c);
      }
  }

  // Every other element where it lies: a constant, for which there are shuffles.
  using Alternate = std::integral_constant<std::int64_t, 2 * kSize>;
  void alternate(const ReduceRun& run, Acc* acc) const {
    for (std::int64_t c = 0; c < run.count; ++c)
      elements(run.in + c * run.across, Alternate(), run.n, run.position, run.step, acc[c]);
  }

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

  // stride: a Size where elements lie side by side.
  template <class Stride>
  void elements(const char* in, Stride stride, std::int64_t n, std::int64_t position, std::int64_t step,
                Acc& acc) const {
    if constexpr (is_truth_v<R>) {
      acc = search_truth(in, n, functor.op == ReduceOp::kAny) < n;
    } else if constexpr (is_arg_extreme_v<R>) {
      find_extreme(in, n, position, step, acc);
    } else {
      std::int64_t i = 0;
      if constexpr (is_count_v<R> && sizeof(In) == 1) {
        for (; i + kByteLanes <= n; i += count_bytes(in + i, n - i, acc)) {
        }
      } else if constexpr (is_extreme_v<R>) {
        return functor.combine(acc, largest(in, n));
      } else if constexpr (is_moments_v<R>) {
        if (n >= 2 * kMomentLanes) i = moments(in, stride, n, acc);
      } else if constexpr (Lanes<R>::exist) {
        // A vector of lanes waits for itself: of four the additions overlap.
        if (n >= 2 * kManyLanes<R>) i = lanes<kManyLanes<R>>(in, stride, n, acc);
        if (n - i >= 2 * kLaneCount<R>) i += lanes<kLaneCount<R>>(in + i * stride, stride, n - i, acc);
      }
      for (; i + kReduceBatch <= n; i += kReduceBatch) {
        In x[kReduceBatch];
        for (std::int64_t k = 0; k < kReduceBatch; ++k) x[k] = load(in + (i + k) * stride);
        functor.template add_batch<kReduceBatch>(acc, x, [&](int k) { return position + (i + k) * step; });
      }
      for (; i < n; ++i) functor.add(acc, load(in + i * stride), position + i * step);
    }
  }

  // As many elements as fill all lanes, added to `acc`; returns how many.
  template <std::int64_t kCount, class Stride>
  std::int64_t lanes(const char* in, Stride stride, std::int64_t n, Acc& acc) const {
    using L = Lanes<R>;
    constexpr std::int64_t kParts = kLaneParts<R>;
    typename L::Type lane[kCount * kParts];
    std::fill_n(lane, kCount * kParts, L::identity(functor));
    std::int64_t i = 0;
    for (; i + kCount <= n; i += kCount) {
      const char* const from = in + i * stride;
      if constexpr (kParts == 1 || std::is_same_v<Stride, Size>) {
        constexpr std::int64_t kVectors = kCount / kLaneCount<R>, kLanes = kLaneCount<R> * kParts;
#pragma GCC unroll 4
        for (std::int64_t v = 0; v < kVectors; ++v)  // registers, as no loop over them is left
          for (std::int64_t k = v * kLanes; k < (v + 1) * kLanes; ++k)
            L::add(functor, lane[k], load_lane(from, stride, k));
      } else {
        DLBRIDGE_ND_UNROLL  // pairs of lanes, which stay in registers then
            for (std::int64_t k = 0; k < kCount; ++k) {
          for (std::int64_t part = 0; part < kParts; ++part)
            L::add(functor, lane[k * kParts + part], load_lane(from + k * stride, 0, part));
        }
      }
    }
    fold<kCount * kParts / 2, kParts>(lane, [&](typename L::Type a, typename L::Type b) {
      L::merge(functor, a, b);
      return a;
    });
    L::finish(functor, acc, lane);
    return i;
  }

  // var and std: the mean of a run, then the squares of the distances from it, while it is in the cache. What the mean
  // of lanes is off by adds its square, which is below what is rounded. Returns how many elements were taken.
  static constexpr std::int64_t kMomentLanes = 32;
  void begin(Acc& acc, const char* first) const noexcept {
    if constexpr (R::kHasOrigin)
      if (acc.count == 0) acc.origin = load(first);
  }
  template <class Stride>
  std::int64_t moments(const char* in, Stride stride, std::int64_t n, Acc& acc) const {
    using Value = typename R::Value;
    begin(acc, in);
    const Value origin = R::origin_of(acc);
    const std::int64_t whole = n / kMomentLanes * kMomentLanes;
    const auto distance = [&](std::int64_t i) { return cast<Value>(load(in + i * stride)) - origin; };
    const auto add = [](Value a, Value b) { return a + b; };
    Value sums[kMomentLanes] = {}, squares[kMomentLanes] = {};
    for (std::int64_t i = 0; i < whole; i += kMomentLanes)
      for (std::int64_t k = 0; k < kMomentLanes; ++k) sums[k] += distance(i + k);
    fold<kMomentLanes / 2>(sums, add);
    const Value mean = sums[0] / static_cast<Value>(whole);
    for (std::int64_t i = 0; i < whole; i += kMomentLanes)
      for (std::int64_t k = 0; k < kMomentLanes; ++k) squares[k] += functors::squared_magnitude(distance(i + k) - mean);
    fold<kMomentLanes / 2>(squares, add);
    R::merge(acc, whole, mean - acc.mean, squares[0]);
    return whole;
  }

  // The same of columns that lie side by side, a few at a time; returns how many columns were taken.
  std::int64_t moments_of_columns(const ReduceRun& run, Acc* acc) const {
    using Value = typename R::Value;
    constexpr std::int64_t kWide = kColumnBytes / static_cast<std::int64_t>(sizeof(Value));
    if (run.across != kSize || run.n < 2) return 0;
    std::int64_t c = 0;
    for (; c + kWide <= run.count; c += kWide) {
      const char* const in = run.in + c * kSize;
      Value origin[kWide], mean[kWide] = {}, squares[kWide] = {};
      for (std::int64_t k = 0; k < kWide; ++k) {
        begin(acc[c + k], in + k * kSize);
        origin[k] = R::origin_of(acc[c + k]);
      }
      const auto distance = [&](std::int64_t row, std::int64_t k) {
        return cast<Value>(load(in + row * run.stride + k * kSize)) - origin[k];
      };
      for (std::int64_t row = 0; row < run.n; ++row)
        for (std::int64_t k = 0; k < kWide; ++k) mean[k] += distance(row, k);
      for (std::int64_t k = 0; k < kWide; ++k) mean[k] /= static_cast<Value>(run.n);
      for (std::int64_t row = 0; row < run.n; ++row)
        for (std::int64_t k = 0; k < kWide; ++k) squares[k] += functors::squared_magnitude(distance(row, k) - mean[k]);
      for (std::int64_t k = 0; k < kWide; ++k) R::merge(acc[c + k], run.n, mean[k] - acc[c + k].mean, squares[k]);
    }
    return c;
  }

  // Counts single bytes in as many bytes, until these are full; returns how many were looked at.
  std::int64_t count_bytes(const char* in, std::int64_t n, Acc& acc) const {
    constexpr std::int64_t kRows = std::numeric_limits<std::uint8_t>::max();
    const std::int64_t rows = std::min(n / kByteLanes, kRows);
    std::uint8_t counts[kByteLanes] = {};
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t k = 0; k < kByteLanes; ++k)
        counts[k] = static_cast<std::uint8_t>(counts[k] + R::nonzero(load(in + row * kByteLanes + k)));
    std::int32_t sum = 0;
    for (std::int64_t k = 0; k < kByteLanes; ++k) sum += counts[k];
    acc += sum;
    return rows * kByteLanes;
  }

  using Lane = extreme_lane_t<In>;
  static Lane greater(Lane a, Lane b) noexcept {  // one instruction, which loses NaN
    if constexpr (std::is_integral_v<Lane>) return a < b ? b : a;
    else return a > b ? a : b;
  }
  template <std::int64_t kHalf, std::int64_t kLeast = 1, class L, std::int64_t kCount, class F>
  static void fold(L (&lane)[kCount], F f) noexcept {
    if constexpr (kHalf >= kLeast) {
      for (std::int64_t k = 0; k < kHalf; ++k) lane[k] = f(lane[k], lane[k + kHalf]);
      fold<kHalf / 2, kLeast>(lane, f);
    }
  }

  // The largest of n elements, or NaN. Twice is as good as once, so that the last lanes may overlap others. Of floats
  // the lanes are added up, too: a NaN makes one of them, and if infinities have done so, none is found.
  template <std::int64_t kCount>
  Lane largest_of_lanes(const char* in, std::int64_t n) const {
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
    if constexpr (std::is_floating_point_v<Lane>) {
      fold<kCount / 2>(sum, [](Lane a, Lane b) { return a + b; });
      if (functors::is_nan(sum[0])) {
        const std::int64_t i = search_nan(in, n);
        if (i < n) return cast<Lane>(load(in + i * kSize));
      }
    }
    return lane[0];
  }
  // The same of complex numbers.
  template <std::int64_t kCount>
    requires is_complex_v<Lane>
  Lane largest_of_lanes(const char* in, std::int64_t n) const {
    LaneArray<Lane, kCount> lanes;
    for (std::int64_t k = 0; k < kCount; ++k) lanes.set(k, load(in + k * kSize));
    for (std::int64_t i = kCount; i < n; i += kCount) {
      const char* const from = in + std::min(i, n - kCount) * kSize;
      for (std::int64_t k = 0; k < kCount; ++k) {
        const Lane x = load(from + k * kSize);
        lanes.set_if(lanes.is_below(k, x), k, x);
      }
    }
    Lane best = lanes.get(0);
    for (std::int64_t k = 1; k < kCount; ++k) best = functors::larger(best, lanes.get(k));
    return functors::is_nan(best) ? load(in + search_nan(in, n) * kSize) : best;
  }
  Lane largest(const char* in, std::int64_t n) const {
    constexpr std::int64_t kMany = kRunBytes / sizeof(Lane);
    constexpr std::int64_t kFew = std::max<std::int64_t>(kMany / 4, kReduceBatch);
    if (n >= kMany) return largest_of_lanes<kMany>(in, n);
    if (n >= kFew) return largest_of_lanes<kFew>(in, n);
    Lane best = cast<Lane>(load(in));
    for (std::int64_t i = 1; i < n; ++i) best = functors::larger(best, cast<Lane>(load(in + i * kSize)));
    return best;
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
    Lane best = 1;
    if constexpr (!is_bool) best = largest(in, n);
    const auto value = cast<typename R::Value>(best);
    if (is_passed(value, acc)) return;
    std::int64_t i = 0;
    if constexpr (is_bool) i = search_truth(in, n, functor.prep.flip == 0);
    else if (functors::is_nan(best)) i = search_nan(in, n);
    else i = search(in, n, [&](const char* p) { return cast<Lane>(load(p)) == best; });
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

  void batches_of_columns(const ReduceRun& run, Acc* acc) const {
    std::int64_t first = 0, i = 0;
    if constexpr (is_moments_v<R>) first = moments_of_columns(run, acc);
    for (; i + kReduceBatch <= run.n; i += kReduceBatch)
      for (std::int64_t c = first; c < run.count; ++c) {
        In x[kReduceBatch];
        for (std::int64_t k = 0; k < kReduceBatch; ++k) x[k] = load(run.in + (i + k) * run.stride + c * run.across);
        functor.template add_batch<kReduceBatch>(acc[c], x, [&](int k) { return run.position + (i + k) * run.step; });
      }
    for (; i < run.n; ++i)
      for (std::int64_t c = first; c < run.count; ++c)
        functor.add(acc[c], load(run.in + i * run.stride + c * run.across), run.position + i * run.step);
  }

  // Calls f(slot, row, in, stride, rows) for some columns of some rows at a time, which lie side by side: there, or
  // where they are fetched to. A last tile that is not full begins among the columns of the one before.
  static constexpr std::int64_t kTile = kTileColumns<R>;
  static std::int64_t column_of(std::int64_t slot, std::int64_t count) noexcept {
    return std::max<std::int64_t>(std::min(slot, count - kTile), 0);
  }
  using Tile = std::integral_constant<std::int64_t, kTile>;
  template <class Across, class Count>
  static void fetch_tile(const ReduceRun& run, const char* in, std::int64_t rows, Across across, Count count,
                         char* buffer) noexcept {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t k = 0; k < count; ++k)
        std::memcpy(buffer + (r * kTile + k) * kSize, in + r * run.stride + k * across, kSize);
  }
  template <class F>
  void for_each_tile(const ReduceRun& run, F f) const {
    alignas(64) char buffer[static_cast<std::size_t>(kColumnRows * kTile * kSize)];
    if (run.count < kTile) std::memset(buffer, 0, sizeof(buffer));
    for (std::int64_t row = 0; row < run.n; row += kColumnRows) {
      const std::int64_t rows = std::min(kColumnRows, run.n - row);
      // Behind a narrow row lies the next one, where they are dense: it fills the tile as well as anything.
      const bool is_narrow = run.count < kTile && (run.stride != run.count * kSize ||
                                                   (row + rows - 1) * run.count + kTile > run.n * run.count);
      const bool fetches = run.across != kSize || is_narrow;
      for (std::int64_t slot = 0; slot < run.count; slot += kTile) {
        const char* in = run.in + row * run.stride + column_of(slot, run.count) * run.across;
        if (fetches) {
          if (run.count < kTile) fetch_tile(run, in, rows, run.across, run.count, buffer);
          else if (run.across == Alternate::value) fetch_tile(run, in, rows, Alternate(), Tile(), buffer);
          else fetch_tile(run, in, rows, run.across, Tile(), buffer);
          in = buffer;
        }
        f(slot, row, in, fetches ? kTile * kSize : run.stride, rows);
      }
    }
  }
  // Calls f(slot, column) for each column: its accumulator is that of the slot.
  template <class F>
  static void for_each_slot(std::int64_t count, F f) {
    std::int64_t slot = 0;
    for (; slot + kTile <= count; slot += kTile)
      for (std::int64_t k = 0; k < kTile; ++k) f(slot + k, slot + k);
    for (std::int64_t k = slot - column_of(slot, count); slot < count && k < std::min(kTile, count); ++k)
      f(slot + k, column_of(slot, count) + k);
  }

  void columns(const ReduceRun& run, Acc* acc) const {
    using L = Lanes<R>;
    using Column = typename L::Column;
    constexpr std::int64_t kParts = kLaneParts<R>, kLanes = kTile * kParts;
    Column lane[kMostColumns<R> * kParts];
    std::fill_n(lane, (run.count + kTile - 1) / kTile * kLanes, static_cast<Column>(L::identity(functor)));
    for_each_tile(run, [&](std::int64_t slot, std::int64_t, const char* in, std::int64_t stride, std::int64_t rows) {
      LaneArray<Column, kLanes> tile;
      for (std::int64_t k = 0; k < kLanes; ++k) tile.set(k, lane[slot * kParts + k]);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t k = 0; k < kLanes; ++k) {
          Column sum = tile.get(k);
          L::add(functor, sum, load_lane(in + r * stride, kSize, k));
          tile.set(k, sum);
        }
      for (std::int64_t k = 0; k < kLanes; ++k) lane[slot * kParts + k] = tile.get(k);
    });
    for_each_slot(run.count,
                  [&](std::int64_t slot, std::int64_t c) { L::finish(functor, acc[c], lane + slot * kParts); });
  }

  // The largest of each, or the first NaN, and where it is asked for the row that has it first.
  void extremes_of_columns(const ReduceRun& run, Acc* acc) const {
    using Row = std::make_signed_t<functors::bits_t<sizeof(real_t<Lane>)>>;
    static_assert(kColumnLeaf - 1 <= std::numeric_limits<std::int8_t>::max());
    LaneArray<Lane, kMostColumns<R>> best;
    Row best_row[kMostColumns<R>];
    for (std::int64_t k = 0; k < (run.count + kTile - 1) / kTile * kTile; ++k) {
      best.set(k, functors::lowest<Lane>());
      best_row[k] = 0;
    }
    for_each_tile(run, [&](std::int64_t slot, std::int64_t row, const char* in, std::int64_t stride, std::int64_t n) {
      LaneArray<Lane, kTile> tile;
      Row rows[kTile];
      for (std::int64_t k = 0; k < kTile; ++k) tile.set(k, best.get(slot + k));
      std::copy_n(best_row + slot, kTile, rows);
      for (std::int64_t r = 0; r < n; ++r)
        for (std::int64_t k = 0; k < kTile; ++k) {
          const Lane x = cast<Lane>(load(in + r * stride + k * kSize));
          const bool better = tile.is_below(k, x);
          tile.set_if(better, k, x);
          if constexpr (is_arg_extreme_v<R>) rows[k] = better ? static_cast<Row>(row + r) : rows[k];
        }
      for (std::int64_t k = 0; k < kTile; ++k) best.set(slot + k, tile.get(k));
      std::copy_n(rows, kTile, best_row + slot);
    });
    for_each_slot(run.count, [&](std::int64_t slot, std::int64_t c) {
      if constexpr (is_arg_extreme_v<R>) {
        const auto value = cast<typename R::Value>(best.get(slot));
        if (!is_passed(value, acc[c])) functor.combine(acc[c], Acc{value, run.position + best_row[slot] * run.step});
      } else {
        functor.combine(acc[c], best.get(slot));
      }
    });
  }
};

template <class R>
DLBRIDGE_ND_CLONES void reduce_run(const Runs<R>& runs, const ReduceRun& run, typename R::Acc* acc) {
  const Runs<R> own = runs;  // nothing that is written lies there
  own.reduce(run, acc);
}
template <class R>
DLBRIDGE_ND_CLONES_WITHOUT_FMA void reduce_complex_run(const Runs<R>& runs, const ReduceRun& run,
                                                       typename R::Acc* acc) {
  const Runs<R> own = runs;
  own.reduce(run, acc);
}

}  // namespace dlbridge::nd::host_kernels
