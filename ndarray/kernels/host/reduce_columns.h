// Columns that lie side by side, reduced row by row.
#pragma once

#include <limits>

#include "ndarray/kernels/host/reduce_search.h"

namespace dlbridge::nd::host_kernels {

inline constexpr std::int64_t kColumnLeaf = 128;     // rows, where columns are side by side
inline constexpr std::int64_t kColumnRows = 8;       // of these that are read together
inline constexpr std::int64_t kCastRows = 32;        // that are cast before they are reduced,
inline constexpr std::int64_t kCastRowBytes = 1024;  // and how much of each: a cache holds them

template <class R>
inline constexpr bool has_columns_v = Lanes<R>::exist || is_arg_extreme_v<R>;
// Columns that are in registers together, of those that are walked together.
template <class R>
inline constexpr std::int64_t kTileColumns =
    std::max<std::int64_t>(kReduceBatch, kColumnBytes / static_cast<std::int64_t>(sizeof(typename R::In)));
template <class R>
inline constexpr std::int64_t kMostColumns =
    has_columns_v<R> ? std::clamp<std::int64_t>(4096 / sizeof(typename R::Acc), 512, 2048) : 128;

template <class R>
struct Columns : Searches<R> {
  using In = typename R::In;
  using Acc = typename R::Acc;
  using Base = Searches<R>;
  using Base::cast_in, Base::functor, Base::is_passed, Base::kSize, Base::load, Base::load_lane;
  using typename Base::Alternate, typename Base::Lane;

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

  void begin(Acc& acc, const char* first) const noexcept {
    if constexpr (R::kHasOrigin)
      if (acc.count == 0) acc.origin = load(first);
  }

  // var and std, a few columns at a time: see Runs::moments(). Returns how many columns were taken.
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

}  // namespace dlbridge::nd::host_kernels
