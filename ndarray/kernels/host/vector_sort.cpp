#include "ndarray/kernels/host/vector_sort.h"

#include <cmath>

#if defined(__x86_64__) && defined(__GNUC__)
#include "ndarray/kernels/host/vector_sort_lanes.h"

namespace dlbridge::nd::host_kernels {
namespace {

struct Exchange {
  int low, high;
};
struct Network {
  Exchange exchanges[63]{};
  int count = 0;
};
// Batcher's odd-even merge sort, for any number of elements.
constexpr Network network_of(int n) noexcept {
  Network net;
  for (int p = 1; p < n; p *= 2)
    for (int k = p; k >= 1; k /= 2)
      for (int j = k % p; j + k < n; j += 2 * k)
        for (int i = j; i < j + k && i + k < n; ++i)
          if (i / (2 * p) == (i + k) / (2 * p)) net.exchanges[net.count++] = {i, i + k};
  return net;
}

namespace of_64_bytes {
#define DLBRIDGE_ND_SORT_TARGET DLBRIDGE_ND_AVX512_TARGET
#include "ndarray/kernels/host/vector_sort_quick.h"
#undef DLBRIDGE_ND_SORT_TARGET
}  // namespace of_64_bytes
namespace of_32_bytes {
#define DLBRIDGE_ND_SORT_TARGET DLBRIDGE_ND_AVX2_TARGET
#include "ndarray/kernels/host/vector_sort_quick.h"
#undef DLBRIDGE_ND_SORT_TARGET
}  // namespace of_32_bytes

template <class Quicksort>
constexpr VectorSort<typename Quicksort::Element> kSort{&Quicksort::sort, &Quicksort::select};

bool has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi2");
}
bool has_avx2() noexcept { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }

template <class T>
const VectorSort<T>* of_avx2() noexcept {
  if constexpr (std::is_floating_point_v<T>) return nullptr;
  else return has_avx2() ? &kSort<of_32_bytes::Quicksort<T>> : nullptr;
}

}  // namespace

template <class T>
const VectorSort<T>* find_vector_sort() noexcept {
  static const VectorSort<T>* const found = has_avx512() ? &kSort<of_64_bytes::Quicksort<T>> : of_avx2<T>();
  return found;
}

#else
namespace dlbridge::nd::host_kernels {

template <class T>
const VectorSort<T>* find_vector_sort() noexcept {
  return nullptr;
}
#endif

template const VectorSort<std::int32_t>* find_vector_sort<std::int32_t>() noexcept;
template const VectorSort<std::int64_t>* find_vector_sort<std::int64_t>() noexcept;
template const VectorSort<std::uint32_t>* find_vector_sort<std::uint32_t>() noexcept;
template const VectorSort<std::uint64_t>* find_vector_sort<std::uint64_t>() noexcept;
template const VectorSort<float>* find_vector_sort<float>() noexcept;
template const VectorSort<double>* find_vector_sort<double>() noexcept;

}  // namespace dlbridge::nd::host_kernels
