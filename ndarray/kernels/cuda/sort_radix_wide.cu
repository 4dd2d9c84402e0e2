// Radix sorts of 64-bit keys: alone, and with positions.
#include "ndarray/kernels/cuda/sort_radix.cuh"

namespace dlbridge::nd::cuda_kernels {

int radix_sort(KeyBuffers<std::uint64_t>& keys, std::int64_t n, int bits, const SortArgs& args) {
  return radix_sort_buffers(keys, n, bits, args);
}
int radix_sort(KeyBuffers<std::uint64_t>& keys, KeyBuffers<std::uint32_t>& values, std::int64_t n, int bits,
               const SortArgs& args) {
  return radix_sort_pairs(keys, values, n, bits, args);
}

}  // namespace dlbridge::nd::cuda_kernels
