// The order that makes a scatter with repeated indices deterministic: positions sorted by destination, or the last one
// of each.
#include <algorithm>
#include <cstdint>

#include "ndarray/kernels/cuda/index_loop.cuh"

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
__global__ void __launch_bounds__(kIndexThreads) make_keys(const __grid_constant__ KeyArgs args, Key* keys) {
  const std::int64_t position = std::int64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  if (position < args.space.size) keys[position] = static_cast<Key>(key_at(args, position));
}

template <class Key>
__global__ void __launch_bounds__(kIndexThreads) mark_starts(const Key* keys, std::int64_t n, std::uint8_t* starts) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  if (i < n) starts[i] = i == 0 || keys[i] != keys[i - 1];
}

__global__ void __launch_bounds__(kIndexThreads) mark_last_ones(SortedPositions sorted, std::uint8_t* last) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  if (i < sorted.count) last[sorted.order[i]] = i + 1 == sorted.count || sorted.starts[i + 1] != 0;
}

template <class Key>
int sort_by(const KeyArgs& args, DType dtype, const IndexArgs& loop, SortedPositions& out) {
  const std::int64_t n = args.space.size;
  Key* keys = take<Key>(loop.workspace, n);
  Key* sorted = take<Key>(loop.workspace, n);
  auto* order = take<std::int64_t>(loop.workspace, n);
  auto* starts = take<std::uint8_t>(loop.workspace, n);
  if (keys == nullptr || sorted == nullptr || order == nullptr || starts == nullptr) return kErrorMemory;
  make_keys<<<blocks_for(n), kIndexThreads, 0, stream_of(loop)>>>(args, keys);
  if (const auto rc = cudaGetLastError(); rc != cudaSuccess) return static_cast<int>(rc);
  SortArgs sort_args{};
  sort_args.dtype = dtype;
  sort_args.stable = true;
  sort_args.rows = 1;
  sort_args.n = n;
  sort_args.keys_in = keys;
  sort_args.keys_out = sorted;
  sort_args.indices = order;
  sort_args.workspace = loop.workspace;
  sort_args.stream = loop.stream;
  if (const int rc = sort(sort_args); rc != 0) return rc;
  mark_starts<<<blocks_for(n), kIndexThreads, 0, stream_of(loop)>>>(sorted, n, starts);
  out = {n, order, starts};
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int sort_positions(const IndexArgs& loop, SortedPositions& out) {
  const KeyArgs args(loop);
  if (args.space.size == 1 || loop.unique) {
    out = {args.space.size, nullptr, nullptr};
    return 0;
  }
  // A radix sort takes a pass for each byte of the key.
  if (args.places <= std::int64_t{1} << 16) return sort_by<std::uint16_t>(args, DType::kUInt16, loop, out);
  if (args.places <= std::int64_t{1} << 32) return sort_by<std::uint32_t>(args, DType::kUInt32, loop, out);
  return sort_by<std::uint64_t>(args, DType::kUInt64, loop, out);
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
