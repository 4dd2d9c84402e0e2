// Radix sorts of keys of 16 and 32 bits.
#include "ndarray/kernels/cuda/sort_radix.cuh"

namespace dlbridge::nd::cuda_kernels {

int radix_sort(const std::int32_t* in, std::int32_t* out, std::int64_t n, const SortArgs& args) {
  return radix_sort_direct(in, out, n, args);
}
int radix_sort(KeyBuffers<std::int32_t>& keys, std::int64_t n, int bits, const SortArgs& args) {
  return radix_sort_buffers(keys, n, bits, args);
}
int radix_sort(KeyBuffers<std::uint16_t>& keys, std::int64_t n, int bits, const SortArgs& args) {
  return radix_sort_buffers(keys, n, bits, args);
}

}  // namespace dlbridge::nd::cuda_kernels
