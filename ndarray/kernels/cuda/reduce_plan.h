// How a reduction is spread over the device: which kernel, how threads map to kept and reduced dims, and into how many
// blocks a row or column is split. Plain C++: the plan depends on shape, strides and the device's size alone, so that
// the order of every sum is fixed for a shape.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "ndarray/kernels/functors/reduce_route.h"

namespace dlbridge::nd::cuda_kernels {

// Division by a constant of numbers below 2^63: (mulhi(n, magic) + n) >> shift.
struct FastDivisor {
  std::uint64_t magic;
  std::uint32_t shift;
};
constexpr FastDivisor fast_divisor(std::int64_t divisor) noexcept {
  const auto d = static_cast<std::uint64_t>(divisor < 1 ? 1 : divisor);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(d - 1));
  __extension__ using Wide = unsigned __int128;
  return {static_cast<std::uint64_t>((Wide{(std::uint64_t{1} << shift) - d} << 64) / d + 1), shift};
}
DLBRIDGE_ND_HD inline std::int64_t divide(std::int64_t n, const FastDivisor& by) noexcept {
  const auto unsigned_n = static_cast<std::uint64_t>(n);
#if defined(__CUDA_ARCH__)
  const std::uint64_t high = __umul64hi(unsigned_n, by.magic);
#else
  __extension__ using Wide = unsigned __int128;
  const auto high = static_cast<std::uint64_t>((Wide{unsigned_n} * by.magic) >> 64);
#endif
  return static_cast<std::int64_t>((high + unsigned_n) >> by.shift);
}

// From a linear index over dims (innermost first) to two sums of strides.
struct IndexWalk {
  int ndim;
  std::int64_t shape[kLoopDims];
  FastDivisor divisors[kLoopDims];
  std::int64_t first[kLoopDims];   // bytes of the input
  std::int64_t second[kLoopDims];  // bytes of the output, or positions

  DLBRIDGE_ND_HD void locate(std::int64_t index, std::int64_t& a, std::int64_t& b) const noexcept {
    a = b = 0;
#if defined(__CUDACC__)
#pragma unroll 1
#endif
    for (int d = 0; d + 1 < ndim; ++d) {
      const std::int64_t quotient = divide(index, divisors[d]);
      const std::int64_t remainder = index - quotient * shape[d];
      a += remainder * first[d];
      b += remainder * second[d];
      index = quotient;
    }
    if (ndim > 0) {
      a += index * first[ndim - 1];
      b += index * second[ndim - 1];
    }
  }
};

inline constexpr int kReduceThreads = 256;
inline constexpr int kBlocksPerMultiprocessor = 4;  // resident with 64 registers per thread; 64 bytes in flight each
inline constexpr int kVectorBytes = 16;
inline constexpr std::int64_t kSplitBytes = 32 << 10;  // a block with less to read is not worth a split
inline constexpr std::int64_t kTinyRowBytes = 48;      // shorter rows: one thread each
inline constexpr int kTileVectors = 4;                 // a thread, where rows come through shared memory
inline constexpr std::int64_t kTileBytes = std::int64_t{kTileVectors} * kReduceThreads * kVectorBytes;
inline constexpr std::int64_t kLongNarrowRow = 2048;   // bytes
inline constexpr std::int64_t kLongRowVectors = 1024;  // from here on a block a row
inline constexpr std::int64_t kBlockRowVectors = 128;  // or from here on, where rows are few

enum class ReducePath : std::uint8_t {
  kRows,       // the reduced dim is contiguous: vectors along it, a group of lanes a row
  kShortRows,  // the same where each lane has one vector: several rows in flight
  kBlockRows,  // rows of which a block holds one in its registers
  kTiles,      // rows one after the other in memory, some of them at a time through shared memory
  kColumns,    // a kept dim is contiguous: vectors across columns
  kElements,   // anything else, element by element
};

struct ReducePlan {
  ReducePath path;
  bool rows_fast;             // kElements: neighbouring lanes walk the reduced dims
  bool aligned;               // every element is aligned to its own size (complex numbers may not be)
  std::uint8_t log_lanes_x;   // kRows: lanes along the contiguous dim
  std::uint8_t log_lanes_y;   // kRows: lanes across the other reduced dims; columns: threads along the reduced dims
  int columns;                // threads across kept vectors in a block
  int splits;                 // blocks a row or column
  int chunks;                 // kRows: of the splits, those along the contiguous dim
  std::int64_t kept_size;     // rows; columns: vectors
  std::int64_t reduced_size;  // kRows: length of the contiguous dim; columns: all
  std::int64_t outer_size;    // kRows: the product of the other reduced dims
  std::int64_t chunk;         // reduced elements a split; kTiles: rows a block
  std::int64_t outer_chunk;   // kRows: of the outer dims a split
  std::int64_t step;          // kRows: positions between neighbours; columns: bytes between columns in the output
  IndexWalk kept;             // input and output
  IndexWalk reduced;          // input and positions; kRows: without the contiguous dim

  std::int64_t blocks() const noexcept;
  unsigned threads() const noexcept {
    return path == ReducePath::kColumns || path == ReducePath::kElements ? static_cast<unsigned>(columns << log_lanes_y)
                                                                         : kReduceThreads;
  }
};

// What the plan has to know of the functor.
struct ReduceTraits {
  int itemsize;        // in memory
  int column_vector;   // elements across which the column kernel loads; 1: it has no vectors
  int element_unroll;  // rows in flight a thread
  bool elements_only;  // what only kElements does: casts on load, positions that do not ascend
};

namespace detail {

inline int log2_ceil(std::int64_t n) noexcept {
  return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}
inline int log2_floor(std::int64_t n) noexcept {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) - 1;
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

struct DimList {
  int ndim = 0;
  std::int64_t shape[kLoopDims];
  std::int64_t first[kLoopDims];
  std::int64_t second[kLoopDims];

  DimList(int n, const std::int64_t* shapes, const std::int64_t* a, const std::int64_t* b) {
    for (int d = 0; d < n; ++d) {
      if (shapes[d] == 1) continue;
      shape[ndim] = shapes[d];
      first[ndim] = a[d];
      second[ndim++] = b[d];
    }
  }
  std::int64_t size(int from = 0) const noexcept {
    std::int64_t product = 1;
    for (int d = from; d < ndim; ++d) product *= shape[d];
    return product;
  }
  IndexWalk walk(int from = 0) const noexcept {
    IndexWalk walk;
    walk.ndim = std::max(ndim - from, 0);
    for (int d = from; d < ndim; ++d) {
      walk.shape[d - from] = shape[d];
      walk.divisors[d - from] = fast_divisor(shape[d]);
      walk.first[d - from] = first[d];
      walk.second[d - from] = second[d];
    }
    return walk;
  }
  // Every address that the dims lead to is a multiple of `bytes` away from the base.
  bool multiples_of(std::int64_t bytes, int from = 0) const noexcept {
    for (int d = from; d < ndim; ++d)
      if (first[d] % bytes != 0) return false;
    return true;
  }
};

// Blocks that fill the device: one (almost) full wave where that divides well, else several, so that the last one
// weighs little.
inline std::int64_t splits_for(std::int64_t blocks, int multiprocessors, std::int64_t limit) noexcept {
  const std::int64_t wave = std::int64_t{kBlocksPerMultiprocessor} * std::max(multiprocessors, 1);
  if (limit < 2 || blocks >= 2 * wave || (blocks <= wave && blocks * 10 >= wave * 9)) return 1;
  const std::int64_t in_one_wave = wave / blocks;
  return std::min(limit, in_one_wave >= 4 ? in_one_wave : ceil_div(3 * wave, blocks));
}

inline void plan_rows(ReducePlan& plan, const DimList& kept, const DimList& reduced, std::uintptr_t base,
                      const ReduceTraits& traits, int multiprocessors) noexcept {
  const std::int64_t per_vector = kVectorBytes / traits.itemsize;
  const std::int64_t length = reduced.shape[0], outer = reduced.size(1);
  const bool aligned = base % kVectorBytes == 0 && kept.multiples_of(kVectorBytes) && length % per_vector == 0;
  const std::int64_t vectors = ceil_div(length, per_vector) + (aligned ? 0 : 1);
  const std::int64_t work = vectors * outer;
  plan.kept = kept.walk();
  plan.reduced = reduced.walk(1);
  plan.kept_size = kept.size();
  plan.reduced_size = length;
  plan.outer_size = outer;
  plan.step = reduced.second[0];
  plan.splits = plan.chunks = 1;
  plan.chunk = length;
  plan.outer_chunk = outer;
  plan.path = ReducePath::kRows;

  const std::int64_t resident = std::int64_t{kBlocksPerMultiprocessor} * multiprocessors;
  const bool whole_block = work >= kLongRowVectors || (work >= kBlockRowVectors && plan.kept_size <= 2 * resident);
  const int log_group = whole_block ? log2_floor(kReduceThreads) : std::min(5, log2_ceil(work));
  // With other dims outside, each lane gets several vectors of a run: they are in flight together.
  const int log_x = std::min(
      log_group, outer > 1 && whole_block ? log2_floor(std::max<std::int64_t>(vectors / 4, 1)) : log2_ceil(vectors));
  plan.log_lanes_x = static_cast<std::uint8_t>(log_x);
  plan.log_lanes_y =
      static_cast<std::uint8_t>(whole_block ? log_group - log_x : std::min(log_group - log_x, log2_ceil(outer)));
  if (!whole_block) {
    if (outer == 1 && aligned && vectors <= 32) plan.path = ReducePath::kShortRows;
    return;
  }
  const std::int64_t splits = splits_for(plan.kept_size, multiprocessors, work * kVectorBytes / kSplitBytes);
  if (splits == 1) return;
  const std::int64_t lanes_y = std::int64_t{1} << plan.log_lanes_y;
  const std::int64_t outer_splits = std::min(splits, ceil_div(outer, lanes_y));
  plan.outer_chunk = ceil_div(outer, outer_splits);
  const std::int64_t outer_parts = ceil_div(outer, plan.outer_chunk);
  const std::int64_t chunks = std::max<std::int64_t>(1, splits / outer_parts);
  const std::int64_t unit = kReduceThreads * per_vector;  // keeps every split as aligned as the row
  plan.chunk = ceil_div(ceil_div(length, chunks), unit) * unit;
  plan.chunks = static_cast<int>(ceil_div(length, plan.chunk));
  plan.splits = static_cast<int>(plan.chunks * outer_parts);
}

// Whether a block holds a row in its registers: more than half of what it has, in whole vectors.
inline bool plan_block_rows(ReducePlan& plan, const DimList& kept, const DimList& reduced, std::uintptr_t base,
                            const ReduceTraits& traits) noexcept {
  const std::int64_t row_bytes = reduced.shape[0] * traits.itemsize;
  if (reduced.ndim != 1 || row_bytes <= kTileBytes / 2 || row_bytes > kTileBytes || row_bytes % kVectorBytes != 0 ||
      base % kVectorBytes != 0 || !kept.multiples_of(kVectorBytes))
    return false;
  plan.path = ReducePath::kBlockRows;
  plan.kept = kept.walk();
  plan.kept_size = kept.size();
  plan.reduced_size = reduced.shape[0];
  plan.outer_size = 1;
  plan.step = reduced.second[0];
  plan.splits = plan.chunks = 1;
  return true;
}

// Whether the rows come through shared memory, and how: they lie one after the other, and a tile of whole vectors holds
// some of them, from a row's first element on.
inline bool plan_tiles(ReducePlan& plan, const DimList& kept, const DimList& reduced, std::uintptr_t base,
                       const ReduceTraits& traits) noexcept {
  const std::int64_t row_bytes = reduced.shape[0] * traits.itemsize;
  // Elements of one or two bytes cost too much one by one; long aligned rows are read from vectors.
  if (traits.itemsize < 4 && row_bytes >= kLongNarrowRow && row_bytes % kVectorBytes == 0) return false;
  if (reduced.ndim != 1 || kept.ndim != 1 || kept.first[0] != row_bytes || base % kVectorBytes != 0) return false;
  const std::int64_t unit = kVectorBytes / std::gcd(kVectorBytes, row_bytes);
  const std::int64_t rows = kTileBytes / row_bytes / unit * unit;
  if (rows == 0) return false;
  plan.path = ReducePath::kTiles;
  plan.kept = kept.walk();
  plan.kept_size = kept.size();
  plan.reduced_size = reduced.shape[0];
  plan.outer_size = 1;
  plan.step = reduced.second[0];
  plan.splits = plan.chunks = 1;
  plan.chunk = rows;
  const int lanes = rows < 4 ? kReduceThreads : static_cast<int>(std::min<std::int64_t>(kReduceThreads / rows, 32));
  plan.log_lanes_x = static_cast<std::uint8_t>(lanes < 2 ? 0 : log2_floor(lanes));
  return true;
}

inline void plan_columns(ReducePlan& plan, DimList kept, const DimList& reduced, int vector, const ReduceTraits& traits,
                         int multiprocessors) noexcept {
  plan.step = kept.ndim > 0 ? kept.second[0] : 0;
  if (vector > 1) {
    kept.shape[0] /= vector;
    kept.first[0] *= vector;
    kept.second[0] *= vector;
  }
  plan.kept = kept.walk();
  plan.reduced = reduced.walk();
  plan.kept_size = kept.size();
  const std::int64_t n = plan.reduced_size = reduced.size();
  plan.outer_size = 1;
  const int unroll = vector > 1 ? 4 : traits.element_unroll;
  // Threads along the reduced dims: no more than give each of them a full batch of rows.
  const int most_y = log2_ceil(ceil_div(std::max<std::int64_t>(n, 1), unroll));
  if (plan.rows_fast) {
    plan.log_lanes_y = static_cast<std::uint8_t>(std::min(log2_floor(kReduceThreads), most_y));
    plan.columns = static_cast<int>(
        std::min<std::int64_t>(std::max<std::int64_t>(plan.kept_size, 1), kReduceThreads >> plan.log_lanes_y));
  } else {
    const std::int64_t wanted = vector > 1 ? 64 : 128;
    const std::int64_t narrow = std::clamp<std::int64_t>(plan.kept_size, 1, wanted);
    plan.log_lanes_y = static_cast<std::uint8_t>(std::min(log2_floor(kReduceThreads / narrow), most_y));
    plan.columns = static_cast<int>(std::clamp<std::int64_t>(plan.kept_size, 1, kReduceThreads >> plan.log_lanes_y));
  }
  const std::int64_t blocks = ceil_div(plan.kept_size, plan.columns);
  const std::int64_t rows_a_pass = std::int64_t{unroll} << plan.log_lanes_y;
  const std::int64_t block_bytes = n * plan.columns * std::max(vector * traits.itemsize, 4);  // fewer take as long
  const std::int64_t limit = std::min({n / (2 * rows_a_pass), n / 32, block_bytes / kSplitBytes, std::int64_t{65535}});
  const std::int64_t splits = splits_for(blocks, multiprocessors, limit);
  plan.chunk = ceil_div(std::max<std::int64_t>(n, 1), splits);
  plan.splits = static_cast<int>(ceil_div(std::max<std::int64_t>(n, 1), plan.chunk));
}

}  // namespace detail

inline std::int64_t ReducePlan::blocks() const noexcept {
  switch (path) {
    case ReducePath::kRows: return detail::ceil_div(kept_size, kReduceThreads >> (log_lanes_x + log_lanes_y)) * splits;
    case ReducePath::kShortRows: return detail::ceil_div(kept_size, 4 * (kReduceThreads >> log_lanes_x));
    case ReducePath::kBlockRows: return kept_size;
    case ReducePath::kTiles: return detail::ceil_div(kept_size, chunk);
    default: return detail::ceil_div(kept_size, columns);  // and `splits` in y
  }
}

inline ReducePlan plan_reduction(const ReduceArgs& args, const ReduceTraits& traits, int multiprocessors) noexcept {
  using detail::DimList;
  const DimList kept(args.kept_ndim, args.kept_shape, args.kept_in_strides, args.kept_out_strides);
  const DimList reduced(args.reduced_ndim, args.reduced_shape, args.reduced_in_strides, args.index_strides);
  const auto base = reinterpret_cast<std::uintptr_t>(args.in);
  const std::int64_t itemsize = traits.itemsize;
  ReducePlan plan{};
  plan.aligned = base % static_cast<std::uintptr_t>(itemsize) == 0 && kept.multiples_of(itemsize) &&
                 reduced.multiples_of(itemsize);
  const bool reduced_contiguous = reduced.ndim > 0 && reduced.first[0] == itemsize;
  const bool kept_contiguous = kept.ndim > 0 && kept.first[0] == itemsize;
  if (!traits.elements_only && plan.aligned && args.reduced_size > 0 && reduced_contiguous &&
      (detail::plan_block_rows(plan, kept, reduced, base, traits) ||
       detail::plan_tiles(plan, kept, reduced, base, traits)))
    return plan;
  if (!traits.elements_only && plan.aligned && args.reduced_size > 0 && reduced_contiguous &&
      reduced.shape[0] * itemsize >= kTinyRowBytes) {
    detail::plan_rows(plan, kept, reduced, base, traits, multiprocessors);
    return plan;
  }
  // Aligned rows of one or two vectors are read as such, too.
  if (!traits.elements_only && plan.aligned && reduced_contiguous && reduced.ndim == 1 && reduced.shape[0] > 0 &&
      reduced.shape[0] * itemsize % kVectorBytes == 0 && base % kVectorBytes == 0 && kept.multiples_of(kVectorBytes)) {
    detail::plan_rows(plan, kept, reduced, base, traits, multiprocessors);
    return plan;
  }
  const std::int64_t vector = traits.column_vector;
  const std::int64_t vector_bytes = vector * itemsize;
  const bool vectors = !traits.elements_only && vector > 1 && kept_contiguous && kept.shape[0] % vector == 0 &&
                       base % static_cast<std::uintptr_t>(vector_bytes) == 0 && kept.multiples_of(vector_bytes, 1) &&
                       reduced.multiples_of(vector_bytes);
  plan.path = vectors ? ReducePath::kColumns : ReducePath::kElements;
  plan.rows_fast =
      !vectors && reduced.ndim > 0 && (kept.ndim == 0 || std::abs(reduced.first[0]) < std::abs(kept.first[0]));
  detail::plan_columns(plan, kept, reduced, vectors ? static_cast<int>(vector) : 1, traits, multiprocessors);
  return plan;
}

}  // namespace dlbridge::nd::cuda_kernels
