// searchsorted on CUDA: a thread searches for several values at a time. The keys of a short row lie in the shared
// memory of each block; of a long one the first steps of all searches meet in the caches.
#include <bit>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/search_row.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;  // values of a thread
constexpr int kKeptBytes = 16 << 10;

template <class T>
__global__ void __launch_bounds__(kThreads) search_values(SearchArgs args) {
  const std::int64_t j = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j >= args.count) return;
  const std::int64_t found = functors::search_row(static_cast<const T*>(args.sorted), args.sorted_step, args.n,
                                                  static_cast<const T*>(args.values)[j * args.value_step], args.right);
  args.out[j] = args.from_end ? args.n - found : found;
}

template <class T>
using KeyOf = decltype(functors::order_key(std::declval<T>()));

// first_step: the highest power of two that is at most n; 0 for a row without elements.
template <class T, bool kRight>
__global__ void __launch_bounds__(kThreads) search_kept(SearchArgs args, unsigned first_step) {
  using Key = KeyOf<T>;
  __shared__ alignas(16) unsigned char kept[kKeptBytes];
  Key* const keys = reinterpret_cast<Key*>(kept);
  const auto n = static_cast<unsigned>(args.n);
  for (unsigned k = threadIdx.x; k < n; k += kThreads)
    keys[k] = functors::order_key(static_cast<const T*>(args.sorted)[k * args.sorted_step]);
  __syncthreads();
  const std::int64_t first = std::int64_t{blockIdx.x} * (kThreads * kAtOnce) + threadIdx.x;
  Key value[kAtOnce];
  unsigned found[kAtOnce];
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    const std::int64_t j = first + u * kThreads;
    value[u] = functors::order_key(static_cast<const T*>(args.values)[j < args.count ? j * args.value_step : 0]);
    found[u] = 0;
  }
#pragma unroll 1
  for (unsigned step = first_step; step != 0; step >>= 1) {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const unsigned next = found[u] + step;
      if (next > n) continue;
      const Key& key = keys[next - 1];
      if (kRight ? !(value[u] < key) : key < value[u]) found[u] = next;
    }
  }
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    const std::int64_t j = first + u * kThreads;
    if (j < args.count) args.out[j] = args.from_end ? n - found[u] : found[u];
  }
}

template <class T>
int launch(const SearchArgs& args) {
  const auto stream = reinterpret_cast<cudaStream_t>(args.stream);
  const auto blocks_of = [&](std::int64_t each) { return static_cast<unsigned>((args.count + each - 1) / each); };
  if (args.n * static_cast<std::int64_t>(sizeof(KeyOf<T>)) > kKeptBytes) {
    search_values<T><<<blocks_of(kThreads), kThreads, 0, stream>>>(args);
  } else {
    const unsigned step = std::bit_floor(static_cast<unsigned>(args.n));
    const unsigned blocks = blocks_of(kThreads * kAtOnce);
    if (args.right) search_kept<T, true><<<blocks, kThreads, 0, stream>>>(args, step);
    else search_kept<T, false><<<blocks, kThreads, 0, stream>>>(args, step);
  }
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int search(const SearchArgs& args) {
  return visit_dtype<kAllSet>(args.dtype, [&]<class T>() { return launch<T>(args); }, kErrorUnsupported);
}

}  // namespace dlbridge::nd::cuda_kernels
