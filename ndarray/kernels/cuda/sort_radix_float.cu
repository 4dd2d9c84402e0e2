// The radix sort of float32 keys as they lie in memory.
#include "ndarray/kernels/cuda/sort_radix.cuh"

CUB_NAMESPACE_BEGIN
// CUB's own order of floats puts NaN with a set sign bit first; this one puts every NaN last.
template <>
struct NumericTraits<::dlbridge::nd::cuda_kernels::FloatKey>
    : BaseTraits<UNSIGNED_INTEGER, false, unsigned int, ::dlbridge::nd::cuda_kernels::FloatKey> {
  using UnsignedBits = unsigned int;
  static constexpr ::dlbridge::nd::functors::KeyCode kCode =
      ::dlbridge::nd::functors::key_code(::dlbridge::DType::kFloat32, false);
  static constexpr UnsignedBits LOWEST_KEY = ::dlbridge::nd::functors::from_value_key(UnsignedBits{0}, kCode);
  static constexpr UnsignedBits MAX_KEY = ::dlbridge::nd::functors::from_value_key(~UnsignedBits{0}, kCode);
  static __host__ __device__ __forceinline__ UnsignedBits TwiddleIn(UnsignedBits key) {
    return ::dlbridge::nd::functors::value_key(key, ::dlbridge::nd::functors::key_code(::dlbridge::DType::kFloat32, false));
  }
  static __host__ __device__ __forceinline__ UnsignedBits TwiddleOut(UnsignedBits key) {
    return ::dlbridge::nd::functors::from_value_key(
        key, ::dlbridge::nd::functors::key_code(::dlbridge::DType::kFloat32, false));
  }
};
CUB_NAMESPACE_END

namespace dlbridge::nd::cuda_kernels {

int radix_sort(const FloatKey* in, FloatKey* out, std::int64_t n, const SortArgs& args) {
  return radix_sort_direct(in, out, n, args);
}

}  // namespace dlbridge::nd::cuda_kernels
