// arange, linspace, fill: written 16 bytes at a time.
#include "ndarray/kernels/cuda/elementwise_launch.h"
#include "ndarray/kernels/functors/range.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kVectors = 4;  // a thread

// Elements before the first aligned vector and after the last are written by the first block.
template <class T>
struct RangeParams {
  T* out;
  std::int64_t head;
  std::int64_t count;  // of vectors
  std::int64_t n;
  RangeFn<T> value;
};

template <class T>
__global__ void __launch_bounds__(kBlockThreads) range_kernel(const __grid_constant__ RangeParams<T> p) {
  constexpr int elements = 16 / sizeof(T);
  using V = Vector<T, elements>;
  const std::int64_t first = std::int64_t{blockIdx.x} * (kVectors * kBlockThreads) + threadIdx.x;
  V* const vectors = reinterpret_cast<V*>(p.out + p.head);
#pragma unroll
  for (int u = 0; u < kVectors; ++u) {
    const std::int64_t vector = first + u * kBlockThreads;
    if (vector >= p.count) break;
    V value;
#pragma unroll
    for (int j = 0; j < elements; ++j) value.values[j] = p.value(p.head + vector * elements + j);
    vectors[vector] = value;
  }
  if (blockIdx.x != 0) return;
  const std::int64_t tail = p.head + p.count * elements;
  if (threadIdx.x < p.head) p.out[threadIdx.x] = p.value(threadIdx.x);
  if (tail + threadIdx.x < p.n && threadIdx.x < elements) p.out[tail + threadIdx.x] = p.value(tail + threadIdx.x);
}

// All elements alike: a copy of a scalar.
int fill(const RangeArgs& args) {
  ElementwiseArgs copy{};
  copy.op = Op::kPositive;
  copy.compute = copy.dtype[0] = copy.dtype[1] = args.dtype;
  copy.operands = 2;
  copy.scalar_mask = 2;
  copy.contiguous = true;
  copy.ndim = 1;
  copy.size = copy.shape[0] = args.n;
  copy.data[0] = args.out;
  copy.stream = args.stream;
  return visit_dtype<kBoolSet | kRealSet>(
      args.dtype,
      [&]<class T>() {
        const T value = RangeFn<T>(args)(0);
        __builtin_memcpy(copy.scalars[1].bytes, &value, sizeof value);
        return launch_copy(copy);
      },
      kErrorUnsupported);
}

}  // namespace

int range(const RangeArgs& args) {
  if (contains(kFloatSet, args.dtype) ? args.step == 0 && !args.endpoint : args.int_step == 0) return fill(args);
  return visit_dtype<kBoolSet | kRealSet>(
      args.dtype,
      [&args]<class T>() {
        constexpr std::int64_t elements = 16 / sizeof(T);
        const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(args.out) % 16);
        const std::int64_t head =
            std::min(args.n, misaligned == 0 ? 0 : (16 - misaligned) / static_cast<std::int64_t>(sizeof(T)));
        const std::int64_t count = (args.n - head) / elements;
        const RangeParams<T> p{static_cast<T*>(args.out), head, count, args.n, RangeFn<T>(args)};
        constexpr std::int64_t a_block = kVectors * kBlockThreads;
        const auto blocks = static_cast<unsigned>(std::max<std::int64_t>((count + a_block - 1) / a_block, 1));
        range_kernel<T><<<blocks, kBlockThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(p);
        return static_cast<int>(cudaGetLastError());
      },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::cuda_kernels
