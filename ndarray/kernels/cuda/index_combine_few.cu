// Sums at few destinations on CUDA, of one index array and one column: many values meet at each, so every block, or
// every warp of floats, has a copy of all destinations in shared memory.
#include <algorithm>
#include <cstdint>

#include "ndarray/kernels/cuda/index_atomic.cuh"
#include "ndarray/kernels/cuda/index_loop.cuh"
#include "ndarray/kernels/cuda/lanes.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr std::int64_t kSumsBytes = 32 << 10;  // of a block's copies
constexpr std::int64_t kBlockValues = 16 * kIndexThreads;
constexpr std::int64_t kMostBlocks = 1024;
constexpr int kWarp = 32;
constexpr int kWarps = kIndexThreads / kWarp;

__device__ int place_at(const CombineArgs& args, std::int64_t position) {
  const IndexArray& array = args.space.array[0];
  return static_cast<int>(
      array.resolve(offset_in(args.space.dims, array.strides, static_cast<std::uint64_t>(position))));
}

// Of integers, in words of 32 bits, to which shared memory adds at once.
template <class T>
__global__ void __launch_bounds__(kIndexThreads) add_in_blocks(const __grid_constant__ CombineArgs args, int places) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* const sums = reinterpret_cast<unsigned*>(shared);  // the low words, and of 64 bits the high ones behind them
  constexpr int kWords = sizeof(T) == 8 ? 2 : 1;
  for (int k = threadIdx.x; k < places * kWords; k += kIndexThreads) sums[k] = 0;
  __syncthreads();
  const std::int64_t step = std::int64_t{gridDim.x} * kIndexThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kIndexThreads + threadIdx.x; i < args.space.size; i += step) {
    const int place = place_at(args, i);
    const T value = args.value<T>(i, 0);
    const auto low = static_cast<unsigned>(value);
    const unsigned before = atomicAdd(&sums[place], low);
    if constexpr (kWords == 2) {
      const unsigned high = static_cast<unsigned>(value >> 32) + (before + low < before);
      if (high != 0) atomicAdd(&sums[places + place], high);
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < places; k += kIndexThreads) {
    T sum = static_cast<T>(sums[k]);
    if constexpr (kWords == 2) sum |= static_cast<T>(sums[places + k]) << 32;
    if (sum != 0) combine_at<Op::kAdd>(reinterpret_cast<T*>(args.base + k * args.space.array[0].axis_stride), sum);
  }
}

// Adds nothing to any number, -0.0 included.
template <class A>
__device__ A nothing() {
  if constexpr (is_complex_v<A>) return A(-real_t<A>(0), -real_t<A>(0));
  else return -A(0);
}

// Of floats, in an order that the number of positions alone decides. The lanes of a warp whose values have one
// destination give them to the first of them, which adds them in the order of the lanes.
template <class T>
__global__ void __launch_bounds__(kIndexThreads)
    add_in_warps(const __grid_constant__ CombineArgs args, int places, arith_t<T>* partial) {
  using A = arith_t<T>;
  extern __shared__ __align__(16) unsigned char shared[];
  auto* const all = reinterpret_cast<A*>(shared);
  for (int k = threadIdx.x; k < places * kWarps; k += kIndexThreads) all[k] = nothing<A>();
  __syncthreads();
  const int lane = threadIdx.x % kWarp;
  A* const sums = all + threadIdx.x / kWarp * places;
  const std::int64_t step = std::int64_t{gridDim.x} * kIndexThreads;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kIndexThreads + threadIdx.x - lane; first < args.space.size;
       first += step) {
    const bool active = first + lane < args.space.size;
    const int place = active ? place_at(args, first + lane) : -1;
    const A value = active ? args.value<T>(first + lane, 0) : A(0);
    const unsigned together = __match_any_sync(kAllLanes, place);
    const bool leads = (together & ((1u << lane) - 1)) == 0;
    unsigned others = leads ? together & (together - 1) : 0;
    A sum = value;
    while (__any_sync(kAllLanes, others != 0)) {
      const A next = shuffle_from(value, others != 0 ? __ffs(static_cast<int>(others)) - 1 : lane, kWarp);
      if (others != 0) sum = combined<Op::kAdd, T>(sum, next);
      others &= others - 1;
    }
    if (leads && active) sums[place] = combined<Op::kAdd, T>(sums[place], sum);
    __syncwarp();
  }
  __syncthreads();
  for (int k = threadIdx.x; k < places; k += kIndexThreads) {
    A sum = all[k];
    for (int w = 1; w < kWarps; ++w) sum = combined<Op::kAdd, T>(sum, all[w * places + k]);
    partial[std::int64_t{blockIdx.x} * places + k] = sum;
  }
}

// A warp for each destination.
template <class T>
__global__ void __launch_bounds__(kIndexThreads)
    add_partials(const __grid_constant__ CombineArgs args, int places, int blocks, const arith_t<T>* partial) {
  using A = arith_t<T>;
  const int place = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (place >= places) return;
  const int lane = threadIdx.x % kWarp;
  A sum = nothing<A>();
  for (int b = lane; b < blocks; b += kWarp)
    sum = combined<Op::kAdd, T>(sum, partial[std::int64_t{b} * places + place]);
  for (int delta = kWarp / 2; delta > 0; delta /= 2) sum = combined<Op::kAdd, T>(sum, shuffle_down(sum, delta, kWarp));
  if (lane != 0) return;
  T* const out = reinterpret_cast<T*>(args.base + place * args.space.array[0].axis_stride);
  *out = cast<T>(combined<Op::kAdd, T>(load(out), sum));
}

// Of a block's copies, for each destination.
std::int64_t bytes_a_place(DType dtype) {
  const std::int64_t itemsize = std::max<std::int64_t>(info(dtype).itemsize, 4);
  return contains(kIntSet, dtype) ? itemsize : itemsize * kWarps;
}

template <class T>
int launch(const IndexArgs& loop, const CombineArgs& args) {
  const auto places = static_cast<int>(loop.extent[0]);
  const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, (args.space.size + kBlockValues - 1) / kBlockValues));
  const auto bytes = static_cast<std::size_t>(places * bytes_a_place(loop.dtype));
  if constexpr (is_integer_v<T>) {
    add_in_blocks<T><<<blocks, kIndexThreads, bytes, stream_of(loop)>>>(args, places);
  } else {
    auto* partial = take<arith_t<T>>(loop.workspace, std::int64_t{blocks} * places);
    if (partial == nullptr) return kErrorMemory;
    add_in_warps<T><<<blocks, kIndexThreads, bytes, stream_of(loop)>>>(args, places, partial);
    if (const auto rc = cudaGetLastError(); rc != cudaSuccess) return static_cast<int>(rc);
    const auto of_places = static_cast<unsigned>((places + kWarps - 1) / kWarps);
    add_partials<T><<<of_places, kIndexThreads, 0, stream_of(loop)>>>(args, places, static_cast<int>(blocks), partial);
  }
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

bool adds_few(const IndexArgs& loop, const CombineArgs& args) {
  return loop.itemsize > 1 && loop.arrays == 1 && args.columns.divisor == 1 && loop.extent[0] <= args.space.size &&
         loop.extent[0] * bytes_a_place(loop.dtype) <= kSumsBytes;
}

int add_few(const IndexArgs& loop, const CombineArgs& args) {
  return visit_combined<kAllSet & ~kBoolSet>(Op::kAdd, loop.dtype, [&]<Op op, class T>() {
    if constexpr (op == Op::kAdd && sizeof(T) > 1) return launch<T>(loop, args);
    else return kErrorUnsupported;
  });
}

}  // namespace dlbridge::nd::cuda_kernels
