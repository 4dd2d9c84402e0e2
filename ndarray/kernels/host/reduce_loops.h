// The host's reduction engine: walks kept positions, and for each the reduced ones as a balanced tree over short runs,
// so that the rounding error of a sum grows with the logarithm of its length.
#pragma once

#include <algorithm>
#include <limits>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/reduce_route.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/reduce_lanes.h"

namespace dlbridge::nd::host_kernels {

struct HostReduction {
  const ReduceArgs& args;
  functors::ReduceRoute route;
  InnerLoop cast;  // null: elements are loaded as they are
  char* out;
  const std::int64_t* out_strides;
};

inline constexpr int kReduceBatch = 16;
inline constexpr std::int64_t kReduceLeaf = 512;     // elements that one accumulator takes in sequence
inline constexpr std::int64_t kExactLeaf = 16384;    // the same where nothing is rounded
inline constexpr std::int64_t kColumnLeaf = 128;     // rows, where columns are side by side
inline constexpr std::int64_t kReduceColumns = 128;  // columns that are walked together
inline constexpr std::int64_t kCountColumns = 512;   // the same where elements are counted, or fewer of narrow rows
inline constexpr std::int64_t kFewColumns = 64;
inline constexpr std::int64_t kCastChunk = 256;
inline constexpr std::int64_t kByteLanes = 64;  // counters of single bytes

template <class R>
class Reducer;

// A run of n elements, `stride` bytes apart, of as many columns: where the time goes.
struct ReduceRun {
  const char* in;
  std::int64_t stride, n, position, step, columns;
};
template <class R>
DLBRIDGE_ND_CLONES void reduce_run(const Reducer<R>& reducer, const ReduceRun& run, typename R::Acc* acc) {
  reducer.reduce(run, acc);
}
template <class R>
DLBRIDGE_ND_CLONES_WITHOUT_FMA void reduce_complex_run(const Reducer<R>& reducer, const ReduceRun& run,
                                                       typename R::Acc* acc) {
  reducer.reduce(run, acc);
}

template <class R>
class Reducer {
 public:
  using In = typename R::In;
  using Acc = typename R::Acc;

  explicit Reducer(const HostReduction& call)
      : call_(call), args_(call.args), functor_{{functors::reduction_of(call.args, call.route)}} {}

  int run() const {
    // Columns side by side share the cache lines of each row.
    const bool columns = args_.kept_ndim > 0 && call_.cast == nullptr && args_.reduced_ndim > 0 &&
                         std::abs(args_.kept_in_strides[0]) < std::abs(args_.reduced_in_strides[0]);
    const std::int64_t width = args_.kept_ndim > 0 ? args_.kept_shape[0] : 1;
    const std::int64_t step = columns ? column_step(width) : 1;
    std::int64_t index[kLoopDims]{};
    const char* in = static_cast<const char*>(args_.in);
    char* out = call_.out;
    for (std::int64_t done = 0; done < args_.kept_size; done += width) {
      for (std::int64_t c = 0; c < width; c += step) {
        const std::int64_t rest = std::min(step, width - c), first = is_better_twice(rest, step) ? width - step : c;
        reduce_columns(in + first * kept_stride(), out + first * out_stride(), std::min(step, width - first));
      }
      for (int d = 1; d < args_.kept_ndim; ++d) {
        in += args_.kept_in_strides[d];
        out += call_.out_strides[d];
        if (++index[d] < args_.kept_shape[d]) break;
        in -= args_.kept_in_strides[d] * args_.kept_shape[d];
        out -= call_.out_strides[d] * args_.kept_shape[d];
        index[d] = 0;
      }
    }
    return 0;
  }

  void reduce(const ReduceRun& run, Acc* acc) const {
    const auto [in, stride, n, position, step, columns] = run;
    constexpr std::int64_t kSize = sizeof(In);
    if (columns > 1) {
      if (kept_stride() == kSize) rows_of_columns(in, stride, n, position, step, columns, kSize, acc);
      else rows_of_columns(in, stride, n, position, step, columns, kept_stride(), acc);
    } else if (call_.cast != nullptr) {
      alignas(16) char buffer[static_cast<std::size_t>(kCastChunk * kSize)];
      for (std::int64_t i = 0; i < n; i += kCastChunk) {
        const std::int64_t count = std::min(kCastChunk, n - i);
        char* const data[2] = {buffer, const_cast<char*>(in + i * stride)};
        const std::int64_t strides[2] = {kSize, stride};
        call_.cast(data, strides, count);
        elements(buffer, kSize, count, position + i * step, step, *acc);
      }
    } else if (stride == kSize) {
      elements(in, kSize, n, position, step, *acc);
    } else {
      elements(in, stride, n, position, step, *acc);
    }
  }

 private:
  std::int64_t kept_stride() const { return args_.kept_ndim > 0 ? args_.kept_in_strides[0] : 0; }
  std::int64_t out_stride() const { return args_.kept_ndim > 0 ? call_.out_strides[0] : 0; }

  static constexpr std::int64_t kMostColumns = is_count_v<R> ? kCountColumns : kReduceColumns;
  static std::int64_t column_step(std::int64_t width) noexcept {
    if (width >= kMostColumns) return kMostColumns;
    return is_count_v<R> && width >= kFewColumns ? kFewColumns : std::min(width, kReduceColumns);
  }

  // Whether fewer columns than a step take longer than a step some of whose columns are done already.
  static bool is_better_twice(std::int64_t columns, std::int64_t step) noexcept {
    return columns < step && (is_count_v<R> || (Lanes<R>::exist && columns > step / 4));
  }

  void reduce_columns(const char* in, char* out, std::int64_t columns) const {
    Acc acc[kMostColumns];
    std::fill_n(acc, columns, functor_.identity());
    if (args_.reduced_size > 0) reduce_rows(in, columns, 0, args_.reduced_size, acc);
    if constexpr (is_count_v<R>) {  // asked once for all columns
      const auto store = [&](auto answer) {
        for (std::int64_t c = 0; c < columns; ++c) *reinterpret_cast<bool*>(out + c * out_stride()) = answer(acc[c]);
      };
      if (args_.op == ReduceOp::kAny) return store([](Acc count) { return count != 0; });
      if (args_.op == ReduceOp::kAll) return store([n = args_.reduced_size](Acc count) { return count == n; });
    }
    for (std::int64_t c = 0; c < columns; ++c) functor_.store(acc[c], out + c * out_stride());
  }

  // Whether `count` elements suffice for an answer: any() has found one that is true, all() one that is not.
  bool is_decided(const Acc& acc, std::int64_t count) const {
    if constexpr (is_count_v<R>) {
      if (args_.op == ReduceOp::kAny) return acc != 0;
      if (args_.op == ReduceOp::kAll) return acc != count;
    }
    return false;
  }

  void reduce_rows(const char* in, std::int64_t columns, std::int64_t first, std::int64_t last, Acc* acc) const {
    const std::int64_t leaf = columns > 1 ? kColumnLeaf : is_exact_v<R> ? kExactLeaf : kReduceLeaf;
    if (last - first <= leaf) return reduce_leaf(in, columns, first, last, acc);
    const std::int64_t middle = first + ((last - first) / 2 + leaf - 1) / leaf * leaf;
    reduce_rows(in, columns, first, middle, acc);
    if (columns == 1 && is_decided(*acc, middle - first)) return;
    if constexpr (R::kFindsLater) return reduce_rows(in, columns, middle, last, acc);  // knows what was larger before
    if (is_count_v<R> && columns > 1) return reduce_rows(in, columns, middle, last, acc);
    Acc other[kMostColumns];
    std::fill_n(other, columns, functor_.identity());
    reduce_rows(in, columns, middle, last, other);
    for (std::int64_t c = 0; c < columns; ++c) functor_.combine(acc[c], other[c]);
  }

  // Splits [first, last) into runs along the innermost reduced dim.
  void reduce_leaf(const char* in, std::int64_t columns, std::int64_t first, std::int64_t last, Acc* acc) const {
    std::int64_t index[kLoopDims]{};
    std::int64_t position = 0;
    for (std::int64_t d = 0, rest = first; rest > 0 && d < args_.reduced_ndim; ++d) {
      index[d] = rest % args_.reduced_shape[d];
      rest /= args_.reduced_shape[d];
      in += index[d] * args_.reduced_in_strides[d];
      position += index[d] * args_.index_strides[d];
    }
    if (args_.reduced_ndim == 0) return reduce_run(in, 0, 1, 0, 0, columns, acc);
    while (first < last) {
      const std::int64_t length = std::min(last - first, args_.reduced_shape[0] - index[0]);
      reduce_run(in, args_.reduced_in_strides[0], length, position, args_.index_strides[0], columns, acc);
      first += length;
      in -= index[0] * args_.reduced_in_strides[0];
      position -= index[0] * args_.index_strides[0];
      index[0] = 0;
      for (int d = 1; d < args_.reduced_ndim; ++d) {
        in += args_.reduced_in_strides[d];
        position += args_.index_strides[d];
        if (++index[d] < args_.reduced_shape[d]) break;
        in -= args_.reduced_in_strides[d] * args_.reduced_shape[d];
        position -= args_.index_strides[d] * args_.reduced_shape[d];
        index[d] = 0;
      }
    }
  }

  void reduce_run(const char* in, std::int64_t stride, std::int64_t n, std::int64_t position, std::int64_t step,
                  std::int64_t columns, Acc* acc) const {
    const ReduceRun run{in, stride, n, position, step, columns};
    if constexpr (is_complex_v<In>) reduce_complex_run(*this, run, acc);
    else host_kernels::reduce_run(*this, run, acc);
  }

  In load(const char* p) const noexcept {
    In x;
    std::memcpy(&x, p, sizeof(In));
    return functors::prepare(x, functor_.prep);
  }

  // As many elements as fill all lanes, added to `acc`; returns how many.
  template <class F>
  [[gnu::always_inline]] inline std::int64_t lanes(const F& functor, const char* in, std::int64_t stride,
                                                   std::int64_t n, typename F::Acc& acc) const {
    constexpr std::int64_t kCount = kLaneCount<F>;
    typename Lanes<F>::Type lane[kCount];
    std::fill_n(lane, kCount, Lanes<F>::identity(functor));
    std::int64_t i = 0;
    for (; i + kCount <= n; i += kCount)
      for (std::int64_t k = 0; k < kCount; ++k) Lanes<F>::add(functor, lane[k], load(in + (i + k) * stride));
    for (std::int64_t half = kCount / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) Lanes<F>::merge(functor, lane[k], lane[k + half]);
    Lanes<F>::finish(functor, acc, lane[0]);
    return i;
  }

  // Counts single bytes in as many bytes, until these are full; returns how many were looked at.
  [[gnu::always_inline]] inline std::int64_t count_bytes(const char* in, std::int64_t stride, std::int64_t n,
                                                         Acc& acc) const {
    constexpr std::int64_t kRows = std::numeric_limits<std::uint8_t>::max();
    const std::int64_t rows = std::min(n / kByteLanes, kRows);
    std::uint8_t lanes[kByteLanes] = {};
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t k = 0; k < kByteLanes; ++k)
        lanes[k] = static_cast<std::uint8_t>(lanes[k] + R::nonzero(load(in + (row * kByteLanes + k) * stride)));
    std::int32_t sum = 0;
    for (std::int64_t k = 0; k < kByteLanes; ++k) sum += lanes[k];
    acc += sum;
    return rows * kByteLanes;
  }

  // Always inlined, so that a constant stride becomes vector loads.
  [[gnu::always_inline]] inline void elements(const char* in, std::int64_t stride, std::int64_t n,
                                              std::int64_t position, std::int64_t step, Acc& acc) const {
    std::int64_t i = 0;
    if constexpr (is_count_v<R> && sizeof(In) == 1) {
      for (; i + kByteLanes <= n; i += count_bytes(in + i * stride, stride, n - i, acc)) {
      }
    } else if constexpr (Lanes<R>::exist) {
      if (n >= 2 * kLaneCount<R>) i = lanes<R>(functor_, in, stride, n, acc);
    } else if constexpr (R::kFindsLater) {
      // Most runs have nothing larger than what was found before, and no NaN.
      using Largest = functors::Extreme<In>;
      if (functor_.ascending && n >= 2 * kLaneCount<Largest>) {
        auto best = functors::lowest<typename Largest::Acc>();
        const std::int64_t done = lanes<Largest>(Largest{functor_}, in, stride, n, best);
        for (std::int64_t k = done; k < n; ++k)
          best = functors::larger(best, cast<decltype(best)>(load(in + k * stride)));
        if (best <= acc.value) return;
      }
    }
    for (; i + kReduceBatch <= n; i += kReduceBatch) {
      In x[kReduceBatch];
      for (std::int64_t k = 0; k < kReduceBatch; ++k) x[k] = load(in + (i + k) * stride);
      functor_.template add_batch<kReduceBatch>(acc, x, [=](int k) { return position + (i + k) * step; });
    }
    for (; i < n; ++i) functor_.add(acc, load(in + i * stride), position + i * step);
  }

  // Counts of up to kColumnLeaf rows in integers as wide as the elements are.
  template <std::int64_t kColumns>
  [[gnu::always_inline]] inline void count_columns(const char* in, std::int64_t stride, std::int64_t n,
                                                   std::int64_t column_stride, Acc* acc) const {
    using Lane = std::conditional_t<sizeof(In) == 1, std::uint8_t,
                                    std::conditional_t<sizeof(In) == 2, std::uint16_t, std::uint32_t>>;
    static_assert(kColumnLeaf <= std::numeric_limits<std::uint8_t>::max());
    Lane lanes[kColumns] = {};
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < kColumns; ++c)
        lanes[c] =
            static_cast<Lane>(lanes[c] + static_cast<Lane>(R::nonzero(load(in + i * stride + c * column_stride))));
    for (std::int64_t c = 0; c < kColumns; ++c) acc[c] += lanes[c];
  }

  [[gnu::always_inline]] inline void rows_of_columns(const char* in, std::int64_t stride, std::int64_t n,
                                                     std::int64_t position, std::int64_t step, std::int64_t columns,
                                                     std::int64_t column_stride, Acc* acc) const {
    std::int64_t i = 0;
    if constexpr (is_count_v<R>) {
      if (columns == kCountColumns) return count_columns<kCountColumns>(in, stride, n, column_stride, acc);
      if (columns == kFewColumns) return count_columns<kFewColumns>(in, stride, n, column_stride, acc);
    } else if (Lanes<R>::exist && columns == kReduceColumns) {
      Acc lanes[kReduceColumns];  // nothing else points here, so that the compiler need not store them a row
      std::copy_n(acc, kReduceColumns, lanes);
      for (; i < n; ++i)
        for (std::int64_t c = 0; c < kReduceColumns; ++c)
          functor_.add(lanes[c], load(in + i * stride + c * column_stride), 0);
      std::copy_n(lanes, kReduceColumns, acc);
    }
    for (; i + kReduceBatch <= n; i += kReduceBatch)
      for (std::int64_t c = 0; c < columns; ++c) {
        In x[kReduceBatch];
        for (std::int64_t k = 0; k < kReduceBatch; ++k) x[k] = load(in + (i + k) * stride + c * column_stride);
        functor_.template add_batch<kReduceBatch>(acc[c], x, [=](int k) { return position + (i + k) * step; });
      }
    for (; i < n; ++i)
      for (std::int64_t c = 0; c < columns; ++c)
        functor_.add(acc[c], load(in + i * stride + c * column_stride), position + i * step);
  }

  const HostReduction& call_;
  const ReduceArgs& args_;
  R functor_;
};

// Each in the file of its name.
int reduce_sum(const HostReduction& call);
int reduce_prod(const HostReduction& call);
int reduce_extreme(const HostReduction& call);
int reduce_arg_extreme(const HostReduction& call);
int reduce_count(const HostReduction& call);
int reduce_moments(const HostReduction& call);
int reduce_norms(const HostReduction& call);

template <template <class> class Functor, DTypeSet Set>
int reduce_family(const HostReduction& call) {
  return functors::visit_functor<Functor, Set>(call.route.load, [&]<class R>() { return Reducer<R>(call).run(); });
}

}  // namespace dlbridge::nd::host_kernels
