// The combining scatter whose order would show, on CUDA: values are combined by destination in a tree that depends on
// the sorted order alone, so that the result is the same on every run, also for floats.
//
// The sorted positions are cut into tiles. A destination whose positions lie within a tile is written at once; the sums
// of those that reach over an edge become items of the next level, two at most a tile, and the levels go on until one
// tile is left. Of few columns (elements of the dims that are not indexed) a block walks a tile for one of them, and
// its threads hand their sums on; of many a thread walks a short tile for one.
#include <cstdint>

#include "ndarray/kernels/cuda/index_atomic.cuh"
#include "ndarray/kernels/cuda/index_loop.cuh"
#include "ndarray/kernels/cuda/lanes.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr std::int64_t kTile = 32;  // of a thread
constexpr int kAThread = 4;         // items of each thread of a block
constexpr std::int64_t kBlockTile = kAThread * kIndexThreads;
constexpr std::int64_t kFewColumns = 8;  // from here on neighbours read neighbours
constexpr int kWarp = 32;
constexpr int kWarps = kIndexThreads / kWarp;

// What an item of a level is: it goes on with the destination of the one before, begins a new one, or is not there.
enum Kind : std::uint8_t { kContinues = 0, kBegins = 1, kAbsent = 2 };

template <class T>
struct Level {
  std::int64_t items;
  SortedPositions sorted;     // of level 0
  const std::uint8_t* kinds;  // of the others
  const std::int64_t* keys;
  const arith_t<T>* sums;  // [items][columns]
  std::uint8_t* next_kinds;
  std::int64_t* next_keys;
  arith_t<T>* next_sums;

  template <bool kFirst>
  __device__ std::uint8_t kind(std::int64_t i) const {
    if constexpr (kFirst) return sorted.starts(i) ? kBegins : kContinues;
    else return kinds[i];
  }
  template <bool kFirst>
  __device__ arith_t<T> value(const CombineArgs& args, std::int64_t i, std::int64_t column) const {
    if constexpr (kFirst) return args.value<T>(sorted.order == nullptr ? i : std::int64_t{sorted.order[i]}, column);
    else return sums[i * static_cast<std::int64_t>(args.columns.divisor) + column];
  }
  // Combines what stands at the destination of item i with the sum of all that goes there.
  template <Op op, bool kFirst>
  __device__ void write(const CombineArgs& args, std::int64_t i, std::int64_t column, arith_t<T> sum) const {
    T* out = nullptr;
    if (kFirst && sorted.order == nullptr) out = args.place<T>(i, column);
    else out = args.keyed_place<T>(key<kFirst>(i), column);
    *out = cast<T>(combined<op, T>(load(out), sum));
  }
  template <bool kFirst>
  __device__ std::int64_t key(std::int64_t i) const {
    if constexpr (kFirst) return sorted.key(i);
    else return keys[i];
  }
  // Item `slot` of a tile at the next level.
  template <bool kFirst>
  __device__ void emit(const CombineArgs& args, std::int64_t at, int slot, Kind next, std::int64_t i,
                       std::int64_t column, arith_t<T> sum) const {
    const std::int64_t item = at * 2 + slot;
    if (column == 0) {
      next_kinds[item] = next;
      next_keys[item] = next == kAbsent ? 0 : key<kFirst>(i);
    }
    if (next != kAbsent) next_sums[item * static_cast<std::int64_t>(args.columns.divisor) + column] = sum;
  }
};

template <Op op, class T, bool kFirst>
__global__ void __launch_bounds__(kIndexThreads)
    combine_tiles(const __grid_constant__ CombineArgs args, const __grid_constant__ Level<T> level) {
  using A = arith_t<T>;
  const std::int64_t tiles = (level.items + kTile - 1) / kTile;
  auto tile_at = std::uint64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  const auto column = static_cast<std::int64_t>(args.columns.split(tile_at));
  const auto tile = static_cast<std::int64_t>(tile_at);
  if (tile >= tiles) return;

  const auto kind_of = [&](std::int64_t i) { return level.template kind<kFirst>(i); };
  const auto write = [&](std::int64_t i, A found) { level.template write<op, kFirst>(args, i, column, found); };
  const auto emit = [&](int slot, Kind kind, std::int64_t i, A found) {
    level.template emit<kFirst>(args, tile, slot, kind, i, column, found);
  };

  const std::int64_t first = tile * kTile;
  const std::int64_t end = first + kTile < level.items ? first + kTile : level.items;
  const bool from_left = tile > 0 && kind_of(first) == kContinues;
  const bool to_right = end < level.items && kind_of(end) == kContinues;
  A sum = A(0);
  std::int64_t at = first;   // the last item that was there
  bool open = false;         // a destination is being summed
  bool leading = from_left;  // it is the one that began in an earlier tile
  bool emitted_leading = false;
  for (std::int64_t i = first; i < end; ++i) {
    const std::uint8_t kind = kind_of(i);
    if (open && kind != kContinues) {
      if (leading) {
        emit(0, kContinues, at, sum);
        emitted_leading = true;
      } else {
        write(at, sum);
      }
      leading = open = false;
    }
    if (kind == kAbsent) continue;
    at = i;
    const A value = level.template value<kFirst>(args, i, column);
    sum = open ? combined<op, T>(sum, value) : value;
    open = true;
  }
  if (level.next_kinds == nullptr) {  // nothing reaches over an edge
    if (open) write(at, sum);
    return;
  }
  if (open && leading) {
    emit(0, kContinues, at, sum);
    // A destination that fills the tile and goes on: the second item keeps the chain unbroken, and changes nothing.
    emit(1, to_right ? kContinues : kAbsent, at, op == Op::kAdd ? A(0) : sum);
    return;
  }
  if (open && !to_right) write(at, sum);
  if (!emitted_leading) emit(0, kAbsent, at, A(0));
  emit(1, open && to_right ? kBegins : kAbsent, at, sum);
}

// A value narrower than a word, between lanes.
template <class A>
__device__ A from_lane_before(A value, int delta) {
  if constexpr (sizeof(A) % 4 == 0) return shuffle_up(value, delta, kWarp);
  else return static_cast<A>(__shfl_up_sync(kAllLanes, static_cast<int>(value), static_cast<unsigned>(delta), kWarp));
}

// What a run of items leaves behind: the sum of the destination that it ends in, and whether that began in it.
template <class A>
struct Tail {
  A sum;
  bool began;
};
template <Op op, class T>
__device__ Tail<arith_t<T>> behind(const Tail<arith_t<T>>& before, const Tail<arith_t<T>>& own) {
  return {own.began ? own.sum : combined<op, T>(before.sum, own.sum), before.began || own.began};
}

// A block for each tile and column; what one thread hands to the next is summed in a tree of the threads' numbers.
template <Op op, class T, bool kFirst>
__global__ void __launch_bounds__(kIndexThreads)
    combine_blocks(const __grid_constant__ CombineArgs args, const __grid_constant__ Level<T> level) {
  using A = arith_t<T>;
  __shared__ Tail<A> of_warp[kWarps];
  auto tile_at = std::uint64_t{blockIdx.x};
  const auto column = static_cast<std::int64_t>(args.columns.split(tile_at));
  const auto tile = static_cast<std::int64_t>(tile_at);
  const auto thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp, warp = thread / kWarp;
  const std::int64_t first = tile * kBlockTile + thread * kAThread;

  std::uint8_t kind[kAThread + 1];  // and that of the item behind; past the last one there is none
  A run[kAThread];
#pragma unroll
  for (int j = 0; j <= kAThread; ++j)
    kind[j] = first + j < level.items ? level.template kind<kFirst>(first + j) : std::uint8_t{kAbsent};
#pragma unroll
  for (int j = 0; j < kAThread; ++j)
    run[j] = kind[j] != kAbsent ? level.template value<kFirst>(args, first + j, column) : A(0);
  bool began[kAThread];  // a destination did among the thread's items up to this
#pragma unroll
  for (int j = 0; j < kAThread; ++j) {
    began[j] = kind[j] != kContinues || (j > 0 && began[j - 1]);
    if (j > 0 && kind[j] == kContinues) run[j] = combined<op, T>(run[j - 1], run[j]);
  }

  Tail<A> tail{run[kAThread - 1], began[kAThread - 1]};
#pragma unroll
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const Tail<A> other{from_lane_before(tail.sum, delta), from_lane_before(tail.began, delta)};
    if (lane >= delta) tail = behind<op, T>(other, tail);
  }
  if (lane == kWarp - 1) of_warp[warp] = tail;
  Tail<A> before{from_lane_before(tail.sum, 1), from_lane_before(tail.began, 1)};
  __syncthreads();
  if (warp > 0) {
    Tail<A> warps = of_warp[0];
    for (int w = 1; w < warp; ++w) warps = behind<op, T>(warps, of_warp[w]);
    before = lane == 0 ? warps : behind<op, T>(warps, before);
  }

  const bool has_before = thread > 0;
  const bool last_level = level.next_kinds == nullptr;
  bool leads_out = false;  // slot 1 is taken
#pragma unroll
  for (int j = 0; j < kAThread; ++j) {
    const std::int64_t i = first + j;
    if (kind[j] == kAbsent) continue;
    const bool ends = kind[j + 1] != kContinues, at_edge = j == kAThread - 1 && thread == kIndexThreads - 1;
    if (!ends && !at_edge) continue;
    const bool leading = !began[j] && !(has_before && before.began);  // it began in an earlier tile
    const A sum = !began[j] && has_before ? combined<op, T>(before.sum, run[j]) : run[j];
    if (leading) level.template emit<kFirst>(args, tile, 0, kContinues, i, column, sum);
    else if (ends) level.template write<op, kFirst>(args, i, column, sum);
    if (ends) continue;
    // What fills the tile and goes on: the second item keeps the chain unbroken, and changes nothing.
    const A rest = leading && op == Op::kAdd ? A(0) : sum;
    level.template emit<kFirst>(args, tile, 1, leading ? kContinues : kBegins, i, column, rest);
    leads_out = true;
  }
  if (last_level) return;
  if (thread == 0 && kind[0] != kContinues) level.template emit<kFirst>(args, tile, 0, kAbsent, first, column, A(0));
  if (thread == kIndexThreads - 1 && !leads_out)
    level.template emit<kFirst>(args, tile, 1, kAbsent, first, column, A(0));
}

template <Op op, class T>
int run_levels(const CombineArgs& args, const SortedPositions& sorted, const IndexArgs& loop) {
  using A = arith_t<T>;
  const cudaStream_t stream = stream_of(loop);
  const auto columns = static_cast<std::int64_t>(args.columns.divisor);
  const bool by_blocks = columns < kFewColumns;
  const std::int64_t tile = by_blocks ? kBlockTile : kTile;
  Level<T> level{sorted.count, sorted, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  for (bool first = true;; first = false) {
    const std::int64_t tiles = (level.items + tile - 1) / tile;
    const bool last = tiles == 1 || (first && sorted.order == nullptr);  // nothing reaches over an edge
    if (!last) {
      level.next_kinds = take<std::uint8_t>(loop.workspace, tiles * 2);
      level.next_keys = take<std::int64_t>(loop.workspace, tiles * 2);
      level.next_sums = take<A>(loop.workspace, tiles * 2 * columns);
      if (level.next_kinds == nullptr || level.next_keys == nullptr || level.next_sums == nullptr) return kErrorMemory;
    }
    const auto blocks = by_blocks ? static_cast<unsigned>(tiles * columns) : blocks_for(tiles * columns);
    const auto run = [&]<bool kFirst>() {
      if (by_blocks) combine_blocks<op, T, kFirst><<<blocks, kIndexThreads, 0, stream>>>(args, level);
      else combine_tiles<op, T, kFirst><<<blocks, kIndexThreads, 0, stream>>>(args, level);
    };
    if (first) run.template operator()<true>();
    else run.template operator()<false>();
    if (const auto rc = cudaGetLastError(); rc != cudaSuccess) return static_cast<int>(rc);
    if (last) return 0;
    level = {tiles * 2, sorted, level.next_kinds, level.next_keys, level.next_sums, nullptr, nullptr, nullptr};
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
