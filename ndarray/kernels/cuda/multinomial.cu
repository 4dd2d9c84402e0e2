// Rows of a multinomial distribution on CUDA, a thread each.
#include "ndarray/kernels/random/multinomial.h"

#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;

template <class Rows>
__global__ void __launch_bounds__(kThreads)
    fill_rows(const __grid_constant__ Rows law, std::int64_t rows, std::int64_t outcomes, std::int64_t* out) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row < rows) law(row, out + row * outcomes);
}

}  // namespace

int multinomial(const MultinomialArgs& args) {
  const auto blocks = static_cast<unsigned>((args.rows + kThreads - 1) / kThreads);
  return philox::visit_multinomial(args, [&]<class Rows>(const Rows& law) {
    fill_rows<<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(law, args.rows, args.outcomes,
                                                                                    args.out);
    return static_cast<int>(cudaGetLastError());
  });
}

}  // namespace dlbridge::nd::cuda_kernels
