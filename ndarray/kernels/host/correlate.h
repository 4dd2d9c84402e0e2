// Sums of products of a few factors with each part of a vector that they lie on, on the host.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// out[k], k < count: the sum of a[k - before + i] * v[i], i < m, of those of the n elements that there are. T: float,
// double, uint32_t, uint64_t.
template <class T>
struct CorrelateArgs {
  const T* a;
  std::int64_t n;
  const T* v;
  std::int64_t m;
  std::int64_t before;
  std::int64_t count;
  T* out;
};
template <class T>
void correlate(const CorrelateArgs<T>& args) noexcept;

}  // namespace dlbridge::nd::host_kernels
