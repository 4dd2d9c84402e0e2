// Radix sorts of keys up to 32 bits with positions.
#include "ndarray/kernels/cuda/sort_radix.cuh"

namespace dlbridge::nd::cuda_kernels {

int radix_sort(KeyBuffers<std::uint32_t>& keys, KeyBuffers<std::uint32_t>& values, std::int64_t n, int bits,
               const SortArgs& args) {
  return radix_sort_pairs(keys, values, n, bits, args);
}

}  // namespace dlbridge::nd::cuda_kernels
