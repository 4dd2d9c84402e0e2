// The loop of an elementwise call as the host code of both backends reshapes it before it runs.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "dlbridge/dims.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

inline constexpr int kTiledDims = kLoopDims + 2;  // tiling makes two dims four

// Dims innermost first; an operand that is no memory (a scalar) has a null address and strides of 0.
struct KernelLoop {
  int operands;
  int ndim;
  std::int64_t shape[kTiledDims];
  char* data[kMaxOperands];
  std::int64_t strides[kMaxOperands][kTiledDims];  // bytes

  std::int64_t size() const noexcept {
    std::int64_t product = 1;
    for (int d = 0; d < ndim; ++d) product *= shape[d];
    return product;
  }
};

inline void insert_dim(KernelLoop& loop, int dim) noexcept {
  for (int d = loop.ndim; d > dim; --d) {
    loop.shape[d] = loop.shape[d - 1];
    for (int k = 0; k < loop.operands; ++k) loop.strides[k][d] = loop.strides[k][d - 1];
  }
  ++loop.ndim;
}

inline void merge_dims(KernelLoop& loop) noexcept {
  std::int64_t* rows[kMaxOperands];
  for (int k = 0; k < loop.operands; ++k) rows[k] = loop.strides[k];
  loop.ndim = dlbridge::merge_dims(loop.shape, loop.ndim, rows, loop.operands);
}

inline KernelLoop make_loop(const ElementwiseArgs& args, const int* itemsizes) noexcept {
  KernelLoop loop;
  loop.operands = args.operands;
  loop.ndim = args.contiguous ? 1 : args.ndim;
  if (args.contiguous) loop.shape[0] = args.size;
  for (int d = 0; d < args.ndim && !args.contiguous; ++d) loop.shape[d] = args.shape[d];
  for (int k = 0; k < args.operands; ++k) {
    const bool scalar = (args.scalar_mask >> k & 1) != 0;
    loop.data[k] = scalar ? nullptr : static_cast<char*>(args.data[k]);
    if (args.contiguous) loop.strides[k][0] = scalar ? 0 : itemsizes[k];
    for (int d = 0; d < args.ndim && !args.contiguous; ++d) loop.strides[k][d] = scalar ? 0 : args.strides[k][d];
  }
  merge_dims(loop);
  return loop;
}

// The part [begin, end) of a dim.
inline KernelLoop slice_dim(const KernelLoop& loop, int dim, std::int64_t begin, std::int64_t end) noexcept {
  KernelLoop part = loop;
  part.shape[dim] = end - begin;
  for (int k = 0; k < loop.operands; ++k)
    if (part.data[k] != nullptr) part.data[k] += begin * loop.strides[k][dim];
  return part;
}

// Bytes from the lowest to the highest address that an operand's elements start at.
inline std::int64_t extent_bytes(const KernelLoop& loop, int operand) noexcept {
  std::int64_t extent = 0;
  for (int d = 0; d < loop.ndim; ++d) extent += (loop.shape[d] - 1) * std::abs(loop.strides[operand][d]);
  return extent;
}

// Calls run(part) for parts small enough that 32-bit offsets reach all of their elements.
template <class Run>
int for_each_32bit_part(const KernelLoop& loop, std::int64_t limit, Run&& run) {
  bool fits = loop.size() <= limit;
  for (int k = 0; k < loop.operands; ++k) fits = fits && extent_bytes(loop, k) <= limit;
  if (fits) return run(loop);
  int widest = 0;
  std::int64_t width = -1;
  for (int d = 0; d < loop.ndim; ++d) {
    std::int64_t reach = loop.shape[d];
    for (int k = 0; k < loop.operands; ++k) reach = std::max(reach, (loop.shape[d] - 1) * std::abs(loop.strides[k][d]));
    if (loop.shape[d] > 1 && reach > width) width = reach, widest = d;
  }
  const std::int64_t middle = loop.shape[widest] / 2;
  const int rc = for_each_32bit_part(slice_dim(loop, widest, 0, middle), limit, run);
  return rc != 0 ? rc : for_each_32bit_part(slice_dim(loop, widest, middle, loop.shape[widest]), limit, run);
}

// Two dims to walk in tiles: `lead` is the innermost that is longer than a cache line's worth, `across` the one that an
// input walks more tightly. In the output's order that input would use a few bytes of each cache line. across 0: none.
struct TilePair {
  int lead;
  int across;
};

inline TilePair transposed_dims(const KernelLoop& loop, const int* itemsizes) noexcept {
  TilePair found{0, 0};
  const int leads = loop.ndim > 1 && loop.shape[0] * itemsizes[0] < 64 ? 2 : 1;
  for (int lead = 0; lead < leads && found.across == 0; ++lead) {
    std::int64_t most = 0;
    for (int k = 1; k < loop.operands; ++k) {
      const std::int64_t run = lead == 0 ? itemsizes[k] : loop.shape[0] * std::abs(loop.strides[k][0]);  // in one step
      const std::int64_t inner = std::abs(loop.strides[k][lead]);
      if (inner < 2 * run || inner < 8) continue;
      for (int d = lead + 1; d < loop.ndim; ++d) {
        const std::int64_t stride = std::abs(loop.strides[k][d]);
        if (stride == 0 || stride * 2 > inner || stride > 64 || loop.shape[d] < 2) continue;
        const std::int64_t gain = std::min<std::int64_t>(inner, 128) * itemsizes[k] / stride;
        if (gain > most) most = gain, found = {lead, d};
      }
    }
  }
  return found;
}

// One dim becomes two, (inner, outer).
inline void split_dim(KernelLoop& loop, int dim, std::int64_t inner) noexcept {
  insert_dim(loop, dim);
  loop.shape[dim + 1] = loop.shape[dim] / inner;
  loop.shape[dim] = inner;
  for (int k = 0; k < loop.operands; ++k) loop.strides[k][dim + 1] = loop.strides[k][dim] * inner;
}

// Calls run(part) for the loop cut into one part of whole tiles, whose innermost dims are a tile's, and up to a few
// rests at the edges. A tile has about `tile_size` elements, near square.
template <class Run>
int for_each_tiled_part(const KernelLoop& loop, TilePair pair, std::int64_t tile_size, Run&& run) {
  const int lead = pair.lead, across = pair.across;
  std::int64_t tall = std::min(loop.shape[across], std::int64_t{32});
  const std::int64_t wide = std::min(loop.shape[lead], std::max<std::int64_t>(tile_size / tall, 1));
  tall = std::min(loop.shape[across], std::max<std::int64_t>(tile_size / wide, 1));
  const std::int64_t whole_wide = loop.shape[lead] / wide * wide;
  const std::int64_t whole_tall = loop.shape[across] / tall * tall;
  const KernelLoop main = slice_dim(loop, lead, 0, whole_wide);
  int rc = 0;
  if (whole_wide != loop.shape[lead])
    rc = for_each_tiled_part(slice_dim(loop, lead, whole_wide, loop.shape[lead]), pair, tile_size, run);
  if (rc == 0 && whole_tall != loop.shape[across])
    rc = for_each_tiled_part(slice_dim(main, across, whole_tall, loop.shape[across]), pair, tile_size, run);
  if (rc != 0) return rc;

  KernelLoop tiled = slice_dim(main, across, 0, whole_tall);
  split_dim(tiled, across, tall);
  split_dim(tiled, lead, wide);
  for (int d = across + 1; d > lead + 1; --d) {  // the tile's second dim moves next to its first
    std::swap(tiled.shape[d], tiled.shape[d - 1]);
    for (int k = 0; k < tiled.operands; ++k) std::swap(tiled.strides[k][d], tiled.strides[k][d - 1]);
  }
  merge_dims(tiled);
  return run(tiled);
}

}  // namespace dlbridge::nd
