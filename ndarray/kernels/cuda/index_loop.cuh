// The loop of a gather or scatter as its kernels take it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/functors/index_plan.h"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kIndexThreads = 256;
inline constexpr int kIndexDims = kLoopDims + 1;  // one more where elements are cut in two

template <int kBytes>
struct AccessOf;
template <>
struct AccessOf<1> {
  using type = std::uint8_t;
};
template <>
struct AccessOf<2> {
  using type = std::uint16_t;
};
template <>
struct AccessOf<4> {
  using type = std::uint32_t;
};
template <>
struct AccessOf<8> {
  using type = std::uint64_t;
};
template <>
struct AccessOf<16> {
  using type = uint4;
};

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
  Bounds bounds;

  __device__ std::int64_t resolve(std::int64_t offset) const {
    return resolve_index(*reinterpret_cast<const std::int64_t*>(data + offset), extent, bounds);
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
  const std::uint32_t* order;  // null: as they are, each with a destination of its own
  const std::uint32_t* keys;   // of the destinations; null where these take 64 bits
  const std::uint64_t* wide_keys;

  __device__ std::int64_t key(std::int64_t i) const {
    return keys != nullptr ? std::int64_t{keys[i]} : static_cast<std::int64_t>(wide_keys[i]);
  }
  __device__ bool starts(std::int64_t i) const { return order == nullptr || i == 0 || key(i) != key(i - 1); }
};
int sort_positions(const IndexArgs& loop, SortedPositions& out);

// Whose value stays of the positions with one destination: the last one's. Told by a table of the destinations, or
// where that would be far larger than the positions, for each of these.
struct Winners {
  const std::uint8_t* keep;                    // by position: 0 where the value is written over
  const std::uint32_t* last;                   // by destination: the last position, counted from 1
  std::int64_t place_stride[kMaxIndexArrays];  // of the number of a destination; 0 without `last`

  __device__ bool any() const { return keep != nullptr || last != nullptr; }
  __device__ bool has(std::int64_t position, std::int64_t place) const {
    return last != nullptr ? last[place] == static_cast<std::uint32_t>(position + 1) : keep[position] != 0;
  }
};

// The index space of a compacted loop: its dims alone, with the arrays' strides to match.
struct IndexSpace {
  IndexDims<std::uint64_t> dims;
  std::int64_t size = 1;
  int arrays = 0;
  IndexArray array[kMaxIndexArrays];
};
IndexSpace index_space(const IndexArgs& loop);

__device__ inline std::int64_t offset_in(const IndexDims<std::uint64_t>& dims, const std::int64_t* strides,
                                         std::uint64_t at) {
  std::int64_t offset = 0;
  for (int d = 0; d < dims.ndim - 1; ++d) offset += static_cast<std::int64_t>(dims.shape[d].split(at)) * strides[d];
  return dims.ndim > 0 ? offset + static_cast<std::int64_t>(at) * strides[dims.ndim - 1] : 0;
}

// The number of a position's destination among all places of the indexed axes.
struct KeyArgs {
  IndexSpace space;
  std::int64_t key_stride[kMaxIndexArrays];
  std::int64_t places;

  explicit KeyArgs(const IndexArgs& loop) : space(index_space(loop)), key_stride{}, places(1) {
    for (int k = loop.arrays; k-- > 0;) {
      key_stride[k] = places;
      places *= loop.extent[k];
    }
  }
};

__device__ inline std::int64_t key_at(const KeyArgs& args, std::int64_t position) {
  std::int64_t key = 0;
  for (int k = 0; k < args.space.arrays; ++k) {
    const IndexArray& array = args.space.array[k];
    key += array.resolve(offset_in(args.space.dims, array.strides, static_cast<std::uint64_t>(position))) *
           args.key_stride[k];
  }
  return key;
}

// Whether a table of all places pays: it is set to 0 and read, which where it is at most so much larger than the
// positions is cheaper than to sort them, and takes less memory. One of `always` places at most does in any case.
inline bool table_pays(const KeyArgs& args, std::int64_t always = 0) noexcept {
  constexpr std::int64_t kPlacesAPosition = 4;
  constexpr std::int64_t kMostPositions = (std::int64_t{1} << 32) - 1;
  return args.space.size < kMostPositions && args.places <= std::max(always, args.space.size * kPlacesAPosition);
}

// A scatter of elements to repeated places, where a table pays: of the values that come to a place the last one is
// found first, then the places are written one after the other. Elements have the alignment of their size.
bool scatters_by_place(const IndexArgs& loop, const KeyArgs& args);
int scatter_by_place(const IndexArgs& loop, const KeyArgs& args);
// last[place] = the last position that goes there, counted from 1; 0 for none.
int note_last(const IndexArgs& loop, const KeyArgs& args, std::uint32_t*& last);
int find_winners(const IndexArgs& loop, const KeyArgs& args, Winners& out);

// The loop of a combining scatter: the index space, and the other dims, whose elements are its columns.
struct CombineArgs {
  const unsigned char* values;
  unsigned char* base;
  IndexSpace space;
  IndexDims<std::uint64_t> column_dims;
  Divider64 columns;

  template <class T>
  __device__ auto value(std::int64_t position, std::int64_t column) const {
    return load(reinterpret_cast<const T*>(
        values + offset_in(space.dims, space.dims.value_strides, static_cast<std::uint64_t>(position)) +
        offset_in(column_dims, column_dims.value_strides, static_cast<std::uint64_t>(column))));
  }
  template <class T>
  __device__ T* place(std::int64_t position, std::int64_t column) const {
    unsigned char* to = base + offset_in(column_dims, column_dims.base_strides, static_cast<std::uint64_t>(column));
    for (int k = 0; k < space.arrays; ++k)
      to +=
          space.array[k].resolve(offset_in(space.dims, space.array[k].strides, static_cast<std::uint64_t>(position))) *
          space.array[k].axis_stride;
    return reinterpret_cast<T*>(to);
  }
  // Of the place with this key.
  template <class T>
  __device__ T* keyed_place(std::int64_t key, std::int64_t column) const {
    unsigned char* to = base + offset_in(column_dims, column_dims.base_strides, static_cast<std::uint64_t>(column));
    for (int k = space.arrays - 1; k > 0; --k) {
      const std::int64_t rest = key / space.array[k].extent;
      to += (key - rest * space.array[k].extent) * space.array[k].axis_stride;
      key = rest;
    }
    return reinterpret_cast<T*>(to + key * space.array[0].axis_stride);
  }
};

// base[destination] = op(base[destination], the values there); `loop` is compacted.
int scatter_combine(const IndexArgs& loop);
// The same in an order that the positions alone decide: they are sorted.
int combine_sorted(const IndexArgs& loop, const CombineArgs& args);
// Sums at destinations of which there are so few that a block holds them all.
bool adds_few(const IndexArgs& loop, const CombineArgs& args);
int add_few(const IndexArgs& loop, const CombineArgs& args);

}  // namespace dlbridge::nd::cuda_kernels
