// The order that makes a scatter with repeated indices deterministic: positions sorted by destination, or the last one
// of each.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "ndarray/kernels/cuda/index_loop.cuh"
#include "ndarray/kernels/cuda/sort.cuh"

namespace dlbridge::nd::cuda_kernels {

IndexSpace index_space(const IndexArgs& loop) {
  IndexSpace space{};
  space.size = 1;
  space.arrays = loop.arrays;
  int n = 0;
  for (int d = 0; d < loop.ndim; ++d) {
    if (!is_index_dim(loop, d)) continue;
    space.dims.shape[n] = Divider64::of(loop.shape[d]);
    space.dims.value_strides[n] = loop.value_strides[d];
    space.dims.base_strides[n] = loop.base_strides[d];
    for (int k = 0; k < loop.arrays; ++k) space.array[k].strides[n] = loop.index_strides[k][d];
    space.size *= loop.shape[d];
    ++n;
  }
  space.dims.ndim = n;
  for (int k = 0; k < loop.arrays; ++k) {
    space.array[k].data = reinterpret_cast<const unsigned char*>(loop.index[k]);
    space.array[k].extent = loop.extent[k];
    space.array[k].axis_stride = loop.axis_stride[k];
    space.array[k].bounds = loop.bounds;
  }
  return space;
}

namespace {

constexpr std::int64_t kTablePays = 1 << 18;  // a table of so few places always does

template <class Key>
__global__ void __launch_bounds__(kIndexThreads)
    make_keys(const __grid_constant__ KeyArgs args, Key* keys, std::uint32_t* positions) {
  const std::int64_t position = std::int64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  if (position >= args.space.size) return;
  keys[position] = static_cast<Key>(key_at(args, position));
  positions[position] = static_cast<std::uint32_t>(position);
}

__global__ void __launch_bounds__(kIndexThreads) mark_last_ones(SortedPositions sorted, std::uint8_t* last) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  if (i < sorted.count) last[sorted.order[i]] = i + 1 == sorted.count || sorted.starts(i + 1);
}

// By as many bits as the keys have: a radix sort takes a pass for each byte.
template <class Key>
int sort_by(const KeyArgs& args, const IndexArgs& loop, const Key*& sorted, SortedPositions& out) {
  const std::int64_t n = args.space.size;
  SortArgs sort_args{};
  sort_args.workspace = loop.workspace;
  sort_args.stream = loop.stream;
  Scratch scratch(sort_args);
  KeyBuffers<Key> keys = scratch.pair<Key>(n);
  KeyBuffers<std::uint32_t> positions = scratch.pair<std::uint32_t>(n);
  if (scratch.failed()) return kErrorMemory;
  make_keys<<<blocks_for(n), kIndexThreads, 0, stream_of(loop)>>>(args, keys.current, positions.current);
  if (const auto rc = cudaGetLastError(); rc != cudaSuccess) return static_cast<int>(rc);
  const int bits = std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(args.places - 1))), 1);
  if (const int rc = radix_sort(keys, positions, n, bits, sort_args); rc != 0) return rc;
  out.order = positions.current;
  sorted = keys.current;
  return 0;
}

}  // namespace

int sort_positions(const IndexArgs& loop, SortedPositions& out) {
  const KeyArgs args(loop);
  out = {args.space.size, nullptr, nullptr, nullptr};
  if (args.space.size == 1 || loop.unique) return 0;
  if (args.space.size > std::int64_t{1} << 32) return kErrorMemory;
  return args.places <= std::int64_t{1} << 32 ? sort_by(args, loop, out.keys, out)
                                              : sort_by(args, loop, out.wide_keys, out);
}

int find_winners(const IndexArgs& loop, const KeyArgs& args, Winners& out) {
  if (table_pays(args, kTablePays)) {
    std::uint32_t* last = nullptr;
    if (const int rc = note_last(loop, args, last); rc != 0) return rc;
    out.last = last;
    std::copy_n(args.key_stride, loop.arrays, out.place_stride);
    return 0;
  }
  SortedPositions sorted;
  if (const int rc = sort_positions(loop, sorted); rc != 0) return rc;
  auto* keep = take<std::uint8_t>(loop.workspace, sorted.count);
  if (keep == nullptr) return kErrorMemory;
  mark_last_ones<<<blocks_for(sorted.count), kIndexThreads, 0, stream_of(loop)>>>(sorted, keep);
  out.keep = keep;
  return static_cast<int>(cudaGetLastError());
}

}  // namespace dlbridge::nd::cuda_kernels
