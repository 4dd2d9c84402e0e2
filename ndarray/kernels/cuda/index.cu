// Gather and scatter on CUDA: one kernel for each access size and direction; a thread moves a few elements at once, so
// that their index loads and their data loads overlap. Runs along a dim that is not indexed move in vectors.
#include <cstdint>

#include "ndarray/kernels/cuda/index_loop.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kPerThread = 4;

template <class U>
struct MoveArgs {
  unsigned char *values, *base;
  U size;
  int arrays;
  IndexDims<U> dims;
  Winners winners;  // scatter
  std::int64_t position_strides[kIndexDims];
  IndexArray array[kMaxIndexArrays];
};

// offsets[j] of the elements linear[j] by one operand's strides.
template <class U>
__device__ void walk(const IndexDims<U>& dims, const std::int64_t* strides, const U (&linear)[kPerThread],
                     std::int64_t (&offsets)[kPerThread]) {
  U rest[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    rest[j] = linear[j];
    offsets[j] = 0;
  }
#pragma unroll 1
  for (int d = 0; d < dims.ndim - 1; ++d) {
#pragma unroll
    for (int j = 0; j < kPerThread; ++j)
      offsets[j] += static_cast<std::int64_t>(dims.shape[d].split(rest[j])) * strides[d];
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) offsets[j] += static_cast<std::int64_t>(rest[j]) * strides[dims.ndim - 1];
}

// Values, base and the first index array in one walk.
template <class U>
__device__ void walk_three(const MoveArgs<U>& args, const U (&linear)[kPerThread], std::int64_t (&value)[kPerThread],
                           std::int64_t (&base)[kPerThread], std::int64_t (&index)[kPerThread]) {
  const IndexDims<U>& dims = args.dims;
  U rest[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    rest[j] = linear[j];
    value[j] = base[j] = index[j] = 0;
  }
  const auto add = [&](int j, U i, int d) {
    value[j] += static_cast<std::int64_t>(i) * dims.value_strides[d];
    base[j] += static_cast<std::int64_t>(i) * dims.base_strides[d];
    index[j] += static_cast<std::int64_t>(i) * args.array[0].strides[d];
  };
#pragma unroll 1
  for (int d = 0; d < dims.ndim - 1; ++d) {
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) add(j, dims.shape[d].split(rest[j]), d);
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) add(j, rest[j], dims.ndim - 1);
}

template <int kBytes, bool kScatter, class U>
__global__ void __launch_bounds__(kIndexThreads) move_elements(const __grid_constant__ MoveArgs<U> args) {
  using Access = typename AccessOf<kBytes>::type;
  U linear[kPerThread];
  bool active[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const U at = (static_cast<U>(blockIdx.x) * kPerThread + j) * kIndexThreads + threadIdx.x;
    active[j] = at < args.size;
    linear[j] = active[j] ? at : 0;  // an element that exists, so that every load is safe
  }
  std::int64_t value[kPerThread], base[kPerThread], index[kPerThread], place[kPerThread] = {};
  walk_three(args, linear, value, base, index);
  const auto go_to = [&](int k, int j, std::int64_t found) {
    base[j] += found * args.array[k].axis_stride;
    if constexpr (kScatter) place[j] += found * args.winners.place_stride[k];
  };
  if (args.arrays > 0) {
    std::int64_t found[kPerThread];
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) found[j] = args.array[0].resolve(index[j]);
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) go_to(0, j, found[j]);
  }
#pragma unroll 1
  for (int k = 1; k < args.arrays; ++k) {
    walk(args.dims, args.array[k].strides, linear, index);
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) go_to(k, j, args.array[k].resolve(index[j]));
  }
  if constexpr (kScatter) {
    if (args.winners.any()) {
      walk(args.dims, args.position_strides, linear, index);
#pragma unroll
      for (int j = 0; j < kPerThread; ++j) active[j] = active[j] && args.winners.has(index[j], place[j]);
    }
  }
  Access element[kPerThread];
  const unsigned char* from = kScatter ? args.values : args.base;
  unsigned char* to = kScatter ? args.base : args.values;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j)
    if (active[j]) element[j] = *reinterpret_cast<const Access*>(from + (kScatter ? value[j] : base[j]));
#pragma unroll
  for (int j = 0; j < kPerThread; ++j)
    if (active[j]) *reinterpret_cast<Access*>(to + (kScatter ? base[j] : value[j])) = element[j];
}

// The dims of the loop, positions in the index space included.
struct Plan {
  int bytes;  // of one access
  int ndim;
  std::int64_t size;
  std::int64_t shape[kIndexDims], value_strides[kIndexDims], base_strides[kIndexDims], position_strides[kIndexDims];
  std::int64_t index_strides[kMaxIndexArrays][kIndexDims];
};

// True when every element, and every step but along dim `skip`, keeps its place modulo `bytes`.
bool is_aligned(const IndexArgs& args, int bytes, int skip) {
  const auto misfits = [bytes](std::int64_t step) { return step % bytes != 0; };
  if (misfits(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(args.values))) ||
      misfits(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(args.base))))
    return false;
  for (int d = 0; d < args.ndim; ++d)
    if (d != skip && (misfits(args.value_strides[d]) || misfits(args.base_strides[d]))) return false;
  for (int k = 0; k < args.arrays; ++k)
    if (misfits(args.axis_stride[k])) return false;
  return true;
}

Plan make_plan(const IndexArgs& args) {
  Plan plan{};
  plan.bytes = args.itemsize;
  plan.ndim = args.ndim;
  std::int64_t position = 1;
  for (int d = 0; d < args.ndim; ++d) {
    plan.shape[d] = args.shape[d];
    plan.value_strides[d] = args.value_strides[d];
    plan.base_strides[d] = args.base_strides[d];
    for (int k = 0; k < args.arrays; ++k) plan.index_strides[k][d] = args.index_strides[k][d];
    if (!is_index_dim(args, d)) continue;
    plan.position_strides[d] = position;
    position *= args.shape[d];
  }
  // A run along dim 0 moves in the widest vectors that all of its places allow.
  const bool run =
      !is_index_dim(args, 0) && args.value_strides[0] == args.itemsize && args.base_strides[0] == args.itemsize;
  const std::int64_t run_bytes = run ? args.shape[0] * args.itemsize : 0;
  for (int bytes = 16; run && bytes > args.itemsize; bytes /= 2) {
    if (run_bytes % bytes != 0 || !is_aligned(args, bytes, 0)) continue;
    plan.bytes = bytes;
    plan.shape[0] = run_bytes / bytes;
    plan.value_strides[0] = plan.base_strides[0] = bytes;
    break;
  }
  // Complex numbers promise the alignment of their parts only: these become a dim.
  if (plan.bytes == args.itemsize && !is_aligned(args, plan.bytes, -1)) {
    plan.bytes /= 2;
    const auto shift = [&plan](std::int64_t* dims, std::int64_t first) {
      for (int d = plan.ndim; d > 0; --d) dims[d] = dims[d - 1];
      dims[0] = first;
    };
    shift(plan.shape, 2);
    shift(plan.value_strides, plan.bytes);
    shift(plan.base_strides, plan.bytes);
    shift(plan.position_strides, 0);
    for (int k = 0; k < args.arrays; ++k) shift(plan.index_strides[k], 0);
    ++plan.ndim;
  }
  plan.size = 1;
  for (int d = 0; d < plan.ndim; ++d) plan.size *= plan.shape[d];
  return plan;
}

template <bool kScatter, class U>
int launch(const IndexArgs& args, const Plan& plan, const Winners& winners) {
  MoveArgs<U> move{};
  move.values = static_cast<unsigned char*>(args.values);
  move.base = static_cast<unsigned char*>(args.base);
  move.size = static_cast<U>(plan.size);
  move.arrays = args.arrays;
  move.winners = winners;
  move.dims.ndim = plan.ndim;
  for (int d = 0; d < plan.ndim; ++d) {
    move.dims.shape[d] = BasicDivider<U>::of(plan.shape[d]);
    move.dims.value_strides[d] = plan.value_strides[d];
    move.dims.base_strides[d] = plan.base_strides[d];
    move.position_strides[d] = plan.position_strides[d];
  }
  for (int k = 0; k < args.arrays; ++k) {
    IndexArray& array = move.array[k];
    array.data = reinterpret_cast<const unsigned char*>(args.index[k]);
    array.extent = args.extent[k];
    array.axis_stride = args.axis_stride[k];
    array.bounds = args.bounds;
    for (int d = 0; d < plan.ndim; ++d) array.strides[d] = plan.index_strides[k][d];
  }
  const auto run = [&]<int kBytes>() {
    move_elements<kBytes, kScatter, U><<<blocks_for(plan.size, kPerThread), kIndexThreads, 0, stream_of(args)>>>(move);
    return static_cast<int>(cudaGetLastError());
  };
  switch (plan.bytes) {
    case 1: return run.template operator()<1>();
    case 2: return run.template operator()<2>();
    case 4: return run.template operator()<4>();
    case 8: return run.template operator()<8>();
    case 16: return run.template operator()<16>();
    default: return kErrorUnsupported;
  }
}

template <bool kScatter>
int move(const IndexArgs& args, const Winners& winners) {
  const Plan plan = make_plan(args);
  constexpr std::int64_t kMost32 = (std::int64_t{1} << 31) - 1;
  return plan.size <= kMost32 ? launch<kScatter, std::uint32_t>(args, plan, winners)
                              : launch<kScatter, std::uint64_t>(args, plan, winners);
}

bool selects_nothing(const IndexArgs& args) {
  for (int k = 0; k < args.arrays; ++k)
    if (args.extent[k] == 0) return true;
  return false;
}

// True when two positions of the index space may hold different values for one destination.
bool order_matters(const IndexArgs& args) {
  if (args.unique) return false;
  for (int d = 0; d < args.ndim; ++d)
    if (is_index_dim(args, d) && args.shape[d] > 1 && args.value_strides[d] != 0) return true;
  return false;
}

}  // namespace

int gather(const IndexArgs& args) {
  if (selects_nothing(args)) return kErrorIndex;
  IndexArgs loop = args;
  compact_loop(loop);
  return move<false>(loop, {});
}

int scatter(const IndexArgs& args) {
  if (selects_nothing(args)) return kErrorIndex;
  IndexArgs loop = args;
  compact_loop(loop);
  if (loop.accumulate) return scatter_combine(loop);
  Winners winners{};
  if (order_matters(loop)) {
    const KeyArgs keys(loop);
    if (is_aligned(loop, loop.itemsize, -1) && scatters_by_place(loop, keys)) return scatter_by_place(loop, keys);
    if (const int rc = find_winners(loop, keys, winners); rc != 0) return rc;
  }
  return move<true>(loop, winners);
}

}  // namespace dlbridge::nd::cuda_kernels
