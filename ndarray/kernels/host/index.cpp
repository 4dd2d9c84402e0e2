// Gather and scatter on the host: one walk over the outer dims, one strided inner loop for each way to move an element.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/index_plan.h"
#include "ndarray/kernels/host/copy.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/move_rows.h"

namespace dlbridge::nd::host_kernels {
namespace {

using Bytes = unsigned char;

template <int kSize>
struct Read {
  static constexpr int size = kSize;
  static constexpr bool combines = false, reads = true;
  static void move(Bytes* value, Bytes* base) { std::memcpy(value, base, kSize); }
  static void move_run(Bytes* value, Bytes* base, std::size_t bytes) { std::memcpy(value, base, bytes); }
};

template <int kSize>
struct Write {
  static constexpr int size = kSize;
  static constexpr bool combines = false, reads = false;
  static void move(Bytes* value, Bytes* base) { std::memcpy(base, value, kSize); }
  static void move_run(Bytes* value, Bytes* base, std::size_t bytes) { std::memcpy(base, value, bytes); }
};

template <class T, Op kOp>
struct Combine {
  static constexpr int size = sizeof(T);
  static constexpr bool combines = true, reads = false;
  static void move(Bytes* value, Bytes* base) {
    if constexpr (is_complex_v<T> && kOp == Op::kAdd) {  // by parts: a wide load would wait for two narrow stores
      using Part = Combine<real_t<T>, kOp>;
      Part::move(value, base);
      return Part::move(value + Part::size, base + Part::size);
    }
    T all, more;  // either may lie at an odd address: a view of packed records
    std::memcpy(&all, base, sizeof(T));
    std::memcpy(&more, value, sizeof(T));
    all = cast<T>(combined<kOp, T>(load(&all), load(&more)));
    std::memcpy(base, &all, sizeof(T));
  }
  static void move_run(Bytes* value, Bytes* base, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) move(value + at, base + at);
  }
};

// Where the walk stands: byte offsets of the values, the base and each index array.
struct Position {
  std::int64_t value, base, index[kMaxIndexArrays];
};

// Of an index that exists neither of these differences is negative; where they overflow, it does not.
std::uint64_t differences(std::int64_t i, std::int64_t extent) noexcept {
  const auto index = static_cast<std::uint64_t>(i), size = static_cast<std::uint64_t>(extent);
  return (index + size) | (size - 1 - index);
}

// Adds where an index leads. False: it does not exist, and is refused.
bool add_place(const IndexArgs& args, int array, std::int64_t offset, std::int64_t& place) {
  const std::int64_t extent = args.extent[array];
  std::int64_t i;
  std::memcpy(&i, reinterpret_cast<const Bytes*>(args.index[array]) + offset, sizeof i);
  place += resolve_index(i, extent, args.bounds) * args.axis_stride[array];
  return args.bounds != Bounds::kRefuse || static_cast<std::int64_t>(differences(i, extent)) >= 0;
}

// Adds where n indices lead, each `stride` bytes behind the one before it: byte offsets in the base. False: one of them
// does not exist, and is refused.
template <Bounds bounds>
DLBRIDGE_ND_CLONES bool add_places(const Bytes* index, std::int64_t stride, std::int64_t n, std::int64_t extent,
                                   std::int64_t step, std::int64_t* places) {
  std::uint64_t seen = 0;
  const auto add = [&](std::int64_t k, const Bytes* from) {
    std::int64_t i;
    std::memcpy(&i, from, sizeof i);
    if constexpr (bounds == Bounds::kRefuse) {
      seen |= differences(i, extent);
      const auto position = static_cast<std::uint64_t>(i) + static_cast<std::uint64_t>(extent & i >> 63);
      const std::uint64_t place = static_cast<std::uint64_t>(places[k]) + position * static_cast<std::uint64_t>(step);
      places[k] = static_cast<std::int64_t>(place);  // without overflow, also of an index that is refused
    } else {
      places[k] += resolve_index(i, extent, bounds) * step;
    }
  };
  constexpr std::int64_t kIndex = sizeof(std::int64_t);
  if (stride == kIndex)
    for (std::int64_t k = 0; k < n; ++k) add(k, index + k * kIndex);
  else
    for (std::int64_t k = 0; k < n; ++k) add(k, index + k * stride);
  return static_cast<std::int64_t>(seen) >= 0;
}

constexpr std::int64_t kPlaces = 1024, kAhead = 12;  // of the latter: a row is asked for so many before its turn

// Where a part of the indices along a dim leads, from `first` on: those of the arrays from `array` to before `end`.
struct Places {
  std::int64_t at[kPlaces + kAhead], count;
  bool exist = true;
  Places(const IndexArgs& args, int dim, const Position& position, std::int64_t first, int array, int end) {
    count = std::min(kPlaces, args.shape[dim] - first);
    std::fill_n(at, count + kAhead, 0);
    for (; array < end; ++array) {
      const std::int64_t step = args.index_strides[array][dim];
      const Bytes* index = reinterpret_cast<const Bytes*>(args.index[array]) + position.index[array] + first * step;
      const auto add = args.bounds == Bounds::kWrap   ? &add_places<Bounds::kWrap>
                       : args.bounds == Bounds::kClip ? &add_places<Bounds::kClip>
                                                      : &add_places<Bounds::kRefuse>;
      exist &= add(index, step, count, args.extent[array], args.axis_stride[array], at);
    }
  }
};

// The steps of dense operands are constants: more elements are on their way at a time.
template <class Move, bool dense>
void move_places(Bytes* value, std::int64_t value_stride, Bytes* base, std::int64_t base_stride, const Places& places) {
  if constexpr (dense) value_stride = Move::size, base_stride = 0;
#pragma GCC unroll 8
  for (std::int64_t k = 0; k < places.count; ++k)
    Move::move(value + k * value_stride, base + k * base_stride + places.at[k]);
}

// An index on an axis; where it does not exist, and is refused, not below the extent.
template <Bounds bounds>
std::uint64_t position_of(std::int64_t i, std::int64_t extent) noexcept {
  const auto size = static_cast<std::uint64_t>(extent);
  const std::uint64_t position = static_cast<std::uint64_t>(i) + (size & static_cast<std::uint64_t>(i >> 63));
  if (bounds == Bounds::kRefuse) return position;
  if (bounds == Bounds::kWrap && position < size) return position;
  if (bounds == Bounds::kWrap && position - size < size) return position - size;  // once around needs no division
  return static_cast<std::uint64_t>(resolve_index(i, extent, bounds));
}

// Of one array of indices, one after the other: what is written in any order waits for memory all along, and a part of
// the places found first would let it rest meanwhile. False: an index does not exist, and nothing behind it was moved.
template <class Move, Bounds bounds, bool dense>
bool move_in_turn(const IndexArgs& args, Bytes* value, Bytes* base, const Bytes* index) {
  const std::int64_t extent = args.extent[0], n = args.shape[0];
  const std::int64_t value_step = dense ? Move::size : args.value_strides[0];
  const std::int64_t index_step = dense ? sizeof(std::int64_t) : args.index_strides[0][0];
  const std::int64_t step = dense ? Move::size : args.axis_stride[0];
  for (std::int64_t k = 0; k < n; ++k, value += value_step, index += index_step) {
    std::int64_t i;
    std::memcpy(&i, index, sizeof i);
    const std::uint64_t position = position_of<bounds>(i, extent);
    if (bounds == Bounds::kRefuse && position >= static_cast<std::uint64_t>(extent)) [[unlikely]]
      return false;
    Move::move(value, base + static_cast<std::int64_t>(position) * step);
  }
  return true;
}
template <class Move, Bounds bounds>
bool move_line(const IndexArgs& args, Bytes* value, Bytes* base, const Bytes* index) {
  const bool dense = args.value_strides[0] == Move::size && args.axis_stride[0] == Move::size &&
                     args.index_strides[0][0] == static_cast<std::int64_t>(sizeof(std::int64_t));
  return dense ? move_in_turn<Move, bounds, true>(args, value, base, index)
               : move_in_turn<Move, bounds, false>(args, value, base, index);
}
template <class Move>
auto find_line(Bounds bounds) noexcept -> bool (*)(const IndexArgs&, Bytes*, Bytes*, const Bytes*) {
  if (bounds == Bounds::kRefuse) return &move_line<Move, Bounds::kRefuse>;
  if constexpr (Move::combines) return nullptr;  // what combines is asked to refuse
  else return bounds == Bounds::kWrap ? &move_line<Move, Bounds::kWrap> : &move_line<Move, Bounds::kClip>;
}

// Dense operands and the positions of a mask's true elements, which rise: where as many follow each other, the elements
// between the first and the last are a run.
template <class Move>
void rising_loop(Bytes* value, Bytes* base, const Bytes* index, std::int64_t n) {
  constexpr std::int64_t kRun = 16, kIndex = sizeof(std::int64_t);
  const auto move = [&](std::int64_t i) {
    std::int64_t position;
    std::memcpy(&position, index + i * kIndex, sizeof position);
    Move::move(value + i * Move::size, base + position * Move::size);
  };
  std::int64_t i = 0;
  for (; i + kRun <= n; i += kRun) {
    std::int64_t first, last;
    std::memcpy(&first, index + i * kIndex, sizeof first);
    std::memcpy(&last, index + (i + kRun - 1) * kIndex, sizeof last);
    if (last - first == kRun - 1) Move::move_run(value + i * Move::size, base + first * Move::size, kRun * Move::size);
    else
      for (std::int64_t j = i; j < i + kRun; ++j) move(j);
  }
  for (; i < n; ++i) move(i);
}

// One element all along a dense row; `from` may lie in it, as far as the compiler knows.
template <class Move>
void repeat(Bytes* row, const Bytes* from, std::int64_t n) {
  Bytes element[Move::size];
  std::memcpy(element, from, Move::size);
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(row + i * Move::size, element, Move::size);
}

// False, as of all that follow: an index does not exist, and nothing of its block was moved.
template <class Move>
bool inner_loop(const IndexArgs& args, bool index_moves, const Position& at) {
  const std::int64_t n = args.shape[0], value_stride = args.value_strides[0], base_stride = args.base_strides[0];
  Bytes* value = static_cast<Bytes*>(args.values) + at.value;
  Bytes* base = static_cast<Bytes*>(args.base) + at.base;
  if (!index_moves) {
    std::int64_t place = 0;
    for (int k = 0; k < args.arrays; ++k)
      if (!add_place(args, k, at.index[k], place)) return false;
    base += place;
    if constexpr (!Move::combines) {
      char* const data[] = {reinterpret_cast<char*>(Move::reads ? value : base),
                            reinterpret_cast<char*>(Move::reads ? base : value)};
      const std::int64_t strides[] = {Move::reads ? value_stride : base_stride,
                                      Move::reads ? base_stride : value_stride};
      copy_loop(Move::size)(data, strides, n);
    } else {
      for (std::int64_t i = 0; i < n; ++i) Move::move(value + i * value_stride, base + i * base_stride);
    }
    return true;
  }
  const bool dense = value_stride == Move::size && base_stride == 0;
  if (dense && args.unique && args.arrays == 1 && args.axis_stride[0] == Move::size &&
      args.index_strides[0][0] == static_cast<std::int64_t>(sizeof(std::int64_t)))
    return rising_loop<Move>(value, base, reinterpret_cast<const Bytes*>(args.index[0]) + at.index[0], n), true;
  const auto move = args.arrays == 1 && base_stride == 0 ? find_line<Move>(args.bounds) : nullptr;
  if (move != nullptr) return move(args, value, base, reinterpret_cast<const Bytes*>(args.index[0]) + at.index[0]);
  for (std::int64_t first = 0; first < n; first += kPlaces) {
    const Places places(args, 0, at, first, 0, args.arrays);
    if (!places.exist) return false;
    if (dense) move_places<Move, true>(value, value_stride, base, base_stride, places);
    else move_places<Move, false>(value, value_stride, base, base_stride, places);
    value += kPlaces * value_stride;
    base += kPlaces * base_stride;
  }
  return true;
}

// --- two dims at once ------------------------------------------------------------------------------------------------

// The same elements of each of many rows: the indices move along the first dim.
template <class Move, bool dense>
void move_columns(const IndexArgs& args, Bytes* value, Bytes* base, const Places& places) {
  const std::int64_t value_step = dense ? Move::size : args.value_strides[0];
  const auto bytes = static_cast<std::size_t>(places.count * value_step);
  for (std::int64_t row = 0; row < args.shape[1]; ++row, base += args.base_strides[1]) {
    Bytes* const to = value + row * args.value_strides[1];
    if (Move::reads && dense && row > 0 && args.base_strides[1] == 0) {
      std::memcpy(to, value, bytes);
      continue;
    }
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < places.count; ++k) Move::move(to + k * value_step, base + places.at[k]);
  }
}

// Dense rows: the indices move along the second dim. value_strides[0] == 0: one element all along a row.
template <class Move>
void move_indexed_rows(const IndexArgs& args, Bytes* value, Bytes* base, const Places& places) {
  const std::int64_t n = args.shape[0], step = args.value_strides[1];
  const auto at_value = [=](std::int64_t row) { return reinterpret_cast<char*>(value + row * step); };
  const auto at_base = [&](std::int64_t row) {
    __builtin_prefetch(base + places.at[row + kAhead]);
    return reinterpret_cast<char*>(base + places.at[row]);
  };
  if (args.value_strides[0] == 0) {
    for (std::int64_t row = 0; row < places.count; ++row) repeat<Move>(base + places.at[row], value + row * step, n);
  } else if constexpr (Move::reads) {
    move_each_row(at_value, at_base, n * Move::size, places.count);
  } else {
    move_each_row(at_base, at_value, n * Move::size, places.count);
  }
}

// How two dims are walked at once, where as many elements lie along the second that it pays.
enum class Way {
  kNone,
  kColumns,  // the indices move along the first
  kRows,     // along the second, and the elements along the first are dense
  kCrossed,  // those of one array along the first, those of another along the second
};

bool are_crossed(const IndexArgs& args) noexcept {
  const auto moves = [&](int array, int dim) { return args.index_strides[array][dim] != 0; };
  return args.base_strides[0] == 0 && args.base_strides[1] == 0 && moves(0, 0) != moves(0, 1) &&
         moves(1, 0) == moves(0, 1) && moves(1, 1) == moves(0, 0);
}

template <class Move>
Way find_way(IndexArgs& args) {
  constexpr std::int64_t kFewRows = 4;
  if (Move::combines || args.arrays < 1 || args.arrays > 2 || args.ndim < 2) return Way::kNone;
  if (args.arrays == 2) return args.shape[1] >= kFewRows && are_crossed(args) ? Way::kCrossed : Way::kNone;
  const bool first = args.index_strides[0][0] != 0, second = args.index_strides[0][1] != 0;
  const auto dense = [&](int dim) {
    const std::int64_t step = args.value_strides[dim];
    return args.base_strides[dim] == Move::size && (step == Move::size || (!Move::reads && step == 0));
  };
  if (first == second || args.base_strides[first ? 0 : 1] != 0) return Way::kNone;
  if (second) return dense(0) && args.shape[1] >= kFewRows ? Way::kRows : Way::kNone;
  if (args.shape[1] < kFewRows) return Way::kNone;
  if (!dense(1)) return Way::kColumns;
  for (std::int64_t* row : {args.shape, args.value_strides, args.base_strides, args.index_strides[0]})
    std::swap(row[0], row[1]);
  return Way::kRows;
}

// Those of each row that the one array's indices choose, at the other's.
template <class Move>
bool move_crossed(const IndexArgs& args, const Position& at) {
  const int across = args.index_strides[0][0] != 0 ? 1 : 0;  // the array that moves along the second dim
  for (std::int64_t top = 0; top < args.shape[1]; top += kPlaces) {
    const Places rows(args, 1, at, top, across, across + 1);
    if (!rows.exist) return false;
    for (std::int64_t first = 0; first < args.shape[0]; first += kPlaces) {
      const Places places(args, 0, at, first, 1 - across, 2 - across);
      if (!places.exist) return false;
      Bytes* value = static_cast<Bytes*>(args.values) + at.value + top * args.value_strides[1];
      Bytes* const base = static_cast<Bytes*>(args.base) + at.base;
      value += first * args.value_strides[0];
      for (std::int64_t row = 0; row < rows.count; ++row, value += args.value_strides[1]) {
        if (args.value_strides[0] == Move::size)
          move_places<Move, true>(value, Move::size, base + rows.at[row], 0, places);
        else move_places<Move, false>(value, args.value_strides[0], base + rows.at[row], 0, places);
      }
    }
  }
  return true;
}

template <class Move>
bool move_plane(const IndexArgs& args, Way way, const Position& at) {
  if (way == Way::kCrossed) return move_crossed<Move>(args, at);
  const int dim = way == Way::kRows ? 1 : 0;
  Bytes* value = static_cast<Bytes*>(args.values) + at.value;
  Bytes* const base = static_cast<Bytes*>(args.base) + at.base;
  for (std::int64_t first = 0; first < args.shape[dim]; first += kPlaces) {
    const Places places(args, dim, at, first, 0, 1);
    if (!places.exist) return false;
    if (dim == 1) move_indexed_rows<Move>(args, value, base, places);
    else if (args.value_strides[0] == Move::size) move_columns<Move, true>(args, value, base, places);
    else move_columns<Move, false>(args, value, base, places);
    value += kPlaces * args.value_strides[dim];
  }
  return true;
}

bool moves_first(const IndexArgs& args) noexcept {
  bool moves = false;
  for (int k = 0; k < args.arrays; ++k) moves |= args.index_strides[k][0] != 0;
  return moves;
}

template <class Move>
int walk(const IndexArgs& given) {
  Position at{};
  if (given.ndim == 1) return inner_loop<Move>(given, moves_first(given), at) ? 0 : kErrorIndex;
  IndexArgs args = given;
  compact_loop(args);
  const Way way = find_way<Move>(args);
  const bool index_moves = moves_first(args);
  std::int64_t counter[kLoopDims] = {};
  const auto advance = [&](int d, std::int64_t steps) {
    at.value += steps * args.value_strides[d];
    at.base += steps * args.base_strides[d];
    for (int k = 0; k < args.arrays; ++k) at.index[k] += steps * args.index_strides[k][d];
  };
  for (;;) {
    int d = 1;
    bool exist = true;
    if constexpr (!Move::combines)
      if (way != Way::kNone) exist = move_plane<Move>(args, way, at), d = 2;
    if (way == Way::kNone) exist = inner_loop<Move>(args, index_moves, at);
    if (!exist) return kErrorIndex;
    for (; d < args.ndim; ++d) {
      advance(d, 1);
      if (++counter[d] < args.shape[d]) break;
      advance(d, -args.shape[d]);
      counter[d] = 0;
    }
    if (d >= args.ndim) return 0;
  }
}

bool have_elements(const IndexArgs& args) {
  return std::find(args.extent, args.extent + args.arrays, 0) == args.extent + args.arrays;
}

// Of indices so many bytes apart, without a branch for each.
DLBRIDGE_ND_CLONES bool row_in_bounds(const Bytes* index, std::int64_t stride, std::int64_t n, std::int64_t extent) {
  constexpr std::int64_t kIndex = sizeof(std::int64_t);
  std::uint64_t seen = 0;
  const auto see = [&](const Bytes* from) {
    std::int64_t i;
    std::memcpy(&i, from, sizeof i);
    seen |= differences(i, extent);
  };
  if (stride == kIndex)
    for (std::int64_t k = 0; k < n; ++k) see(index + k * kIndex);
  else
    for (std::int64_t k = 0; k < n; ++k) see(index + k * stride);
  return static_cast<std::int64_t>(seen) >= 0;
}

// Each index once: dims along which an array does not move are left out of its walk.
bool in_bounds(const IndexArgs& args) {
  if (args.bounds != Bounds::kRefuse) return have_elements(args);
  for (int k = 0; k < args.arrays; ++k) {
    std::int64_t shape[kLoopDims], strides[kLoopDims], counter[kLoopDims] = {}, offset = 0;
    int ndim = 0;
    for (int d = 0; d < args.ndim; ++d) {
      if (args.index_strides[k][d] == 0) continue;
      shape[ndim] = args.shape[d];
      strides[ndim++] = args.index_strides[k][d];
    }
    if (ndim == 0) shape[ndim] = 1, strides[ndim++] = 0;
    for (;;) {
      const Bytes* row = reinterpret_cast<const Bytes*>(args.index[k]) + offset;
      if (!row_in_bounds(row, strides[0], shape[0], args.extent[k])) return false;
      int d = 1;
      for (; d < ndim; ++d) {
        offset += strides[d];
        if (++counter[d] < shape[d]) break;
        offset -= strides[d] * shape[d];
        counter[d] = 0;
      }
      if (d == ndim) break;
    }
  }
  return true;
}

template <template <int> class Move>
int walk_size(const IndexArgs& args) {
  switch (args.itemsize) {
    case 1: return walk<Move<1>>(args);
    case 2: return walk<Move<2>>(args);
    case 4: return walk<Move<4>>(args);
    case 8: return walk<Move<8>>(args);
    case 16: return walk<Move<16>>(args);
    default: return kErrorUnsupported;
  }
}

}  // namespace

// What is read goes to a new array, which nobody sees after an error: each index is looked at where it is used.
int gather(const IndexArgs& args) {
  if (!have_elements(args)) return kErrorIndex;
  return walk_size<Read>(args);
}

int scatter(const IndexArgs& args) {
  if (!in_bounds(args)) return kErrorIndex;
  if (!args.accumulate) return walk_size<Write>(args);
  const auto combine = [&]<Op kOp, class T>() { return walk<Combine<T, kOp>>(args); };
  if (args.combine != Op::kMultiply) return visit_combined<kAllSet>(args.combine, args.dtype, combine);
  return visit_dtype<kAllSet & ~kSignedSet>(
      unsigned_of(args.dtype), [&]<class T>() { return combine.template operator()<Op::kMultiply, T>(); },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
