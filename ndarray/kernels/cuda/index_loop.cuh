// The loop of a gather or scatter as its kernels take it.
#pragma once

#include <cstdint>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/functors/index_plan.h"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kIndexThreads = 256;
inline constexpr int kIndexDims = kLoopDims + 1;  // one more where elements are cut in two

inline cudaStream_t stream_of(const IndexArgs& args) noexcept { return reinterpret_cast<cudaStream_t>(args.stream); }

inline unsigned blocks_for(std::int64_t threads, std::int64_t per_thread = 1) noexcept {
  const std::int64_t per_block = kIndexThreads * per_thread;
  return static_cast<unsigned>((threads + per_block - 1) / per_block);
}

// Index array k: where it lies, and what its indices mean.
struct IndexArray {
  const unsigned char* data;
  std::int64_t extent, axis_stride;
  std::int64_t strides[kIndexDims];

  __device__ std::int64_t resolve(std::int64_t offset) const {
    return resolve_index(*reinterpret_cast<const std::int64_t*>(data + offset), extent);
  }
};

// Some dims of the loop. The kernels walk all of them, the index dims alone, or the others alone.
template <class U>
struct IndexDims {
  int ndim = 0;
  BasicDivider<U> shape[kIndexDims];
  std::int64_t value_strides[kIndexDims], base_strides[kIndexDims];
};

// Scratch memory for `count` elements.
template <class T>
T* take(const Workspace& workspace, std::int64_t count) {
  return static_cast<T*>(workspace.get(static_cast<std::size_t>(count) * sizeof(T)));
}

// The positions of the index space (its dims alone, in the loop's order) sorted by destination, equal ones in order.
struct SortedPositions {
  std::int64_t count;          // of positions
  const std::int64_t* order;   // null: as they are
  const std::uint8_t* starts;  // 1 where a destination begins, else 0; null: all 1
};
int sort_positions(const IndexArgs& loop, SortedPositions& out);

// For each position, 1 when it is the last with its destination.
int mark_last(const SortedPositions& sorted, std::uint8_t* last, cudaStream_t stream);

// base[destination] += sum of the values there; `loop` is compacted.
int scatter_add(const IndexArgs& loop);

// The index space of a compacted loop: its dims alone, with the arrays' strides to match.
struct IndexSpace {
  IndexDims<std::uint64_t> dims;
  std::int64_t size = 1;
  int arrays = 0;
  IndexArray array[kMaxIndexArrays];
};
IndexSpace index_space(const IndexArgs& loop);

}  // namespace dlbridge::nd::cuda_kernels
