// The combining scatter whose order would show, on CUDA: values are combined by destination in a tree that depends on
// the sorted order alone, so that the result is the same on every run, also for floats.
//
// The sorted positions are cut into tiles of kTile. A thread walks one tile for one column (an element of the dims that
// are not indexed). A destination whose positions lie within the tile is written at once; the sums of those that reach
// over an edge become items of the next level, two at most a tile, and the levels go on until one tile is left.
#include <cstdint>

#include "ndarray/kernels/cuda/index_atomic.cuh"
#include "ndarray/kernels/cuda/index_loop.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr std::int64_t kTile = 32;

// What an item of a level is: it goes on with the destination of the one before, begins a new one, or is not there.
enum Kind : std::uint8_t { kContinues = 0, kBegins = 1, kAbsent = 2 };

template <class T>
struct Level {
  std::int64_t items;
  const std::uint8_t* kinds;      // null: each begins
  const std::int64_t* positions;  // in the index space; null: as they are
  const arith_t<T>* sums;         // [items][columns]; level 0 reads the values instead
  std::uint8_t* next_kinds;
  std::int64_t* next_positions;
  arith_t<T>* next_sums;
};

template <Op op, class T, bool kFirst>
__global__ void __launch_bounds__(kIndexThreads)
    combine_tiles(const __grid_constant__ CombineArgs args, const __grid_constant__ Level<T> level) {
  using A = arith_t<T>;
  const std::int64_t tiles = (level.items + kTile - 1) / kTile;
  auto tile_at = std::uint64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  const auto column = static_cast<std::int64_t>(args.columns.split(tile_at));
  const auto tile = static_cast<std::int64_t>(tile_at);
  const auto columns = static_cast<std::int64_t>(args.columns.divisor);
  if (tile >= tiles) return;

  const auto kind_of = [&](std::int64_t i) { return level.kinds == nullptr ? std::uint8_t{kBegins} : level.kinds[i]; };
  const auto position_of = [&](std::int64_t i) { return level.positions == nullptr ? i : level.positions[i]; };
  const auto write = [&](std::int64_t position, A found) {
    T* out = args.place<T>(position, column);
    *out = cast<T>(combined<op, T>(load(out), found));
  };
  const auto emit = [&](int slot, Kind kind, std::int64_t position, A sum) {
    const std::int64_t item = tile * 2 + slot;
    if (column == 0) {
      level.next_kinds[item] = kind;
      level.next_positions[item] = position;
    }
    if (kind != kAbsent) level.next_sums[item * columns + column] = sum;
  };

  const std::int64_t first = tile * kTile;
  const std::int64_t end = first + kTile < level.items ? first + kTile : level.items;
  const bool from_left = tile > 0 && kind_of(first) == kContinues;
  const bool to_right = end < level.items && kind_of(end) == kContinues;
  A sum = A(0);
  std::int64_t position = 0;
  bool open = false;         // a destination is being summed
  bool leading = from_left;  // it is the one that began in an earlier tile
  bool emitted_leading = false;
  for (std::int64_t i = first; i < end; ++i) {
    const std::uint8_t kind = kind_of(i);
    if (open && kind != kContinues) {
      if (leading) {
        emit(0, kContinues, position, sum);
        emitted_leading = true;
      } else {
        write(position, sum);
      }
      leading = open = false;
    }
    if (kind == kAbsent) continue;
    position = position_of(i);
    A value;
    if constexpr (kFirst) value = args.value<T>(position, column);
    else value = level.sums[i * columns + column];
    sum = open ? combined<op, T>(sum, value) : value;
    open = true;
  }
  if (level.next_kinds == nullptr) {  // nothing reaches over an edge
    if (open) write(position, sum);
    return;
  }
  if (open && leading) {
    emit(0, kContinues, position, sum);
    // A destination that fills the tile and goes on: the second item keeps the chain unbroken, and changes nothing.
    emit(1, to_right ? kContinues : kAbsent, position, op == Op::kAdd ? A(0) : sum);
    return;
  }
  if (open && !to_right) write(position, sum);
  if (!emitted_leading) emit(0, kAbsent, 0, A(0));
  emit(1, open && to_right ? kBegins : kAbsent, position, sum);
}

template <Op op, class T>
int run_levels(const CombineArgs& args, const SortedPositions& sorted, const IndexArgs& loop) {
  using A = arith_t<T>;
  const cudaStream_t stream = stream_of(loop);
  const auto columns = static_cast<std::int64_t>(args.columns.divisor);
  Level<T> level{sorted.count, sorted.starts, sorted.order, nullptr, nullptr, nullptr, nullptr};
  for (bool first = true;; first = false) {
    const std::int64_t tiles = (level.items + kTile - 1) / kTile;
    const bool last = tiles == 1 || level.kinds == nullptr;  // where each item begins, none reaches over an edge
    if (!last) {
      level.next_kinds = take<std::uint8_t>(loop.workspace, tiles * 2);
      level.next_positions = take<std::int64_t>(loop.workspace, tiles * 2);
      level.next_sums = take<A>(loop.workspace, tiles * 2 * columns);
      if (level.next_kinds == nullptr || level.next_positions == nullptr || level.next_sums == nullptr)
        return kErrorMemory;
    }
    const unsigned blocks = blocks_for(tiles * columns);
    if (first) combine_tiles<op, T, true><<<blocks, kIndexThreads, 0, stream>>>(args, level);
    else combine_tiles<op, T, false><<<blocks, kIndexThreads, 0, stream>>>(args, level);
    if (const auto rc = cudaGetLastError(); rc != cudaSuccess) return static_cast<int>(rc);
    if (last) return 0;
    level = {tiles * 2, level.next_kinds, level.next_positions, level.next_sums, nullptr, nullptr, nullptr};
  }
}

}  // namespace

int combine_sorted(const IndexArgs& loop, const CombineArgs& args) {
  SortedPositions sorted;
  if (const int rc = sort_positions(loop, sorted); rc != 0) return rc;
  return visit_combined<kAllSet>(loop.combine, loop.dtype, [&]<Op op, class T>() {
    if constexpr (op == Op::kAdd || !is_atomic<T>) return run_levels<op, T>(args, sorted, loop);
    else return kErrorUnsupported;  // combined at once
  });
}

}  // namespace dlbridge::nd::cuda_kernels
