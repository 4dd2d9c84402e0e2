// The combining scatter on CUDA. Where no order of the values shows in the result, as in sums of integers, which wrap,
// and in maxima and minima, each value goes to its destination by an atomic operation; where destinations are few and
// many values meet, to a block's own copy of them first. Others are sorted.
#include <algorithm>
#include <cstdint>

#include "ndarray/kernels/cuda/index_atomic.cuh"
#include "ndarray/kernels/cuda/index_loop.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr std::int64_t kFewPlaces = 1024;

template <Op op, class T>
__global__ void __launch_bounds__(kIndexThreads)
    combine_at_once(const __grid_constant__ CombineArgs args, std::int64_t size) {
  std::uint64_t at = std::uint64_t{blockIdx.x} * kIndexThreads + threadIdx.x;
  if (static_cast<std::int64_t>(at) >= size) return;
  const auto column = static_cast<std::int64_t>(args.columns.split(at));
  const auto position = static_cast<std::int64_t>(at);
  combine_at<op>(args.place<T>(position, column), args.value<T>(position, column));
}

CombineArgs combine_args(const IndexArgs& loop) {
  CombineArgs args{};
  args.values = static_cast<const unsigned char*>(loop.values);
  args.base = static_cast<unsigned char*>(loop.base);
  args.space = index_space(loop);
  std::int64_t columns = 1;
  for (int d = 0; d < loop.ndim; ++d) {
    if (is_index_dim(loop, d)) continue;
    const int n = args.column_dims.ndim++;
    args.column_dims.shape[n] = Divider64::of(loop.shape[d]);
    args.column_dims.value_strides[n] = loop.value_strides[d];
    args.column_dims.base_strides[n] = loop.base_strides[d];
    columns *= loop.shape[d];
  }
  args.columns = Divider64::of(columns);
  return args;
}

template <Op op, class T>
int at_once(const IndexArgs& loop, const CombineArgs& args) {
  combine_at_once<op, T><<<blocks_for(loop.size), kIndexThreads, 0, stream_of(loop)>>>(args, loop.size);
  return static_cast<int>(cudaGetLastError());
}

// Whether so many meet at so few destinations that each would be waited for.
bool would_wait(const IndexArgs& loop, const CombineArgs& args) {
  std::int64_t places = static_cast<std::int64_t>(args.columns.divisor);
  for (int k = 0; k < loop.arrays; ++k) places = std::min(places * std::min(loop.extent[k], kFewPlaces), kFewPlaces);
  return places < kFewPlaces && args.space.size >= kFewPlaces;
}

}  // namespace

int scatter_combine(const IndexArgs& loop) {
  const CombineArgs args = combine_args(loop);
  return visit_combined<kAllSet>(loop.combine, loop.dtype, [&]<Op op, class T>() {
    if (op == Op::kAdd && adds_few(loop, args)) return add_few(loop, args);
    if constexpr (is_atomic<T> && (op != Op::kAdd || is_integer_v<T>))
      if (op != Op::kAdd || !would_wait(loop, args)) return at_once<op, T>(loop, args);
    return combine_sorted(loop, args);
  });
}

}  // namespace dlbridge::nd::cuda_kernels
