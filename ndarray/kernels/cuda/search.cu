// searchsorted on CUDA: a thread searches for one value; the first steps of all searches meet in the caches.
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/search_row.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads) search_values(SearchArgs args) {
  const std::int64_t j = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j >= args.count) return;
  args.out[j] = functors::search_row(static_cast<const T*>(args.sorted), args.n, static_cast<const T*>(args.values)[j],
                                     args.right);
}

}  // namespace

int search(const SearchArgs& args) {
  return visit_dtype<kAllSet>(
      args.dtype,
      [&]<class T>() {
        const auto blocks = static_cast<unsigned>((args.count + kThreads - 1) / kThreads);
        search_values<T><<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(args);
        return static_cast<int>(cudaGetLastError());
      },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::cuda_kernels
