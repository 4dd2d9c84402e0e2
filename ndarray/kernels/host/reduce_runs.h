// Runs of elements, where the time of the host's reductions goes: loops that become vectors of whatever width the
// machine has. What a run gives depends on its length and strides alone.
#pragma once

#include "ndarray/kernels/host/reduce_columns.h"

namespace dlbridge::nd::host_kernels {

inline constexpr std::int64_t kReduceLeaf = 1024;  // elements that one accumulator takes in sequence
inline constexpr std::int64_t kExactLeaf = 16384;  // the same where nothing is rounded
inline constexpr std::int64_t kLongBytes = 65536;  // the same where nothing is added up
inline constexpr std::int64_t kFirstFetched = 32;  // elements, where the first may decide
inline constexpr std::int64_t kByteLanes = 64;     // counters of single bytes

// Complex numbers that lie apart fill no vector that a copy of them would not fill as well, unless they are compared.
template <class R>
inline constexpr bool is_read_apart_v = is_complex_v<typename R::In> && !is_extreme_v<R> && !is_arg_extreme_v<R>;
// Sums and the like of numbers that a vector holds several of.
template <class R>
inline constexpr bool has_alternate_v = Lanes<R>::exist && kLaneParts<R> == 1 && !is_extreme_v<R> && !is_truth_v<R> &&
                                        !is_count_v<R> && !is_arg_extreme_v<R> && sizeof(typename R::In) >= 4;

template <class R>
struct Runs : Columns<R> {
  using In = typename R::In;
  using Acc = typename R::Acc;
  using Base = Columns<R>;
  using Base::begin, Base::cast_columns, Base::cast_in, Base::fetch, Base::find_extreme, Base::functor;
  using Base::kSize, Base::largest, Base::load, Base::load_lane, Base::reduce_columns, Base::search_truth;
  using typename Base::Alternate, typename Base::Size;

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
  // Every other element where it lies.
  void alternate(const ReduceRun& run, Acc* acc) const {
    for (std::int64_t c = 0; c < run.count; ++c)
      elements(run.in + c * run.across, Alternate(), run.n, run.position, run.step, acc[c]);
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
        return functor.combine(acc, largest(in, n).value);
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
