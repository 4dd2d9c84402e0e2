// Kernels of which each thread makes and writes 16 bytes of a dense result, element by element.
#pragma once

#include <cstdint>

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/cuda/launch.cuh"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kWriters = 256;  // threads of a block

// What one thread writes.
template <class T>
union WideValue {
  static constexpr int kElements = 16 / sizeof(T);
  uint4 all;
  T elements[kElements];
};

// The element number `first` of the result is the thread's first, of `count`; false where it has none.
template <class T, class U>
__device__ bool find_elements(U size, U& first, int& count) {
  constexpr int kElements = WideValue<T>::kElements;
  first = (static_cast<U>(blockIdx.x) * kWriters + threadIdx.x) * kElements;
  if (first >= size) return false;
  count = size - first < kElements ? static_cast<int>(size - first) : kElements;
  return true;
}

template <class T, class U>
__device__ void write_elements(unsigned char* out, U first, int count, const WideValue<T>& values) {
  T* const to = reinterpret_cast<T*>(out) + first;
  if (count == WideValue<T>::kElements) {
    *reinterpret_cast<uint4*>(to) = values.all;
    return;
  }
#pragma unroll
  for (int i = 0; i < WideValue<T>::kElements; ++i)
    if (i < count) to[i] = values.elements[i];
}

template <class T, class U, class Params>
int launch_writers(void (*kernel)(Params), const Params& p, StreamHandle stream) {
  constexpr U a_block = static_cast<U>(kWriters) * WideValue<T>::kElements;
  return launch(kernel, dim3(static_cast<unsigned>((p.size + a_block - 1) / a_block)), kWriters, 0, stream, p);
}

// Calls run.template operator()<T, U>(): T has `itemsize` bytes, U counts `size` elements and what the threads of the
// last block would write behind them.
template <class Run>
int visit_writers(int itemsize, std::int64_t size, Run run) {
  constexpr std::int64_t limit = (std::int64_t{1} << 31) - kWriters * 16;
  const auto counted = [&]<class T>() {
    return size < limit ? run.template operator()<T, std::uint32_t>() : run.template operator()<T, std::uint64_t>();
  };
  switch (itemsize) {
    case 1: return counted.template operator()<std::uint8_t>();
    case 2: return counted.template operator()<std::uint16_t>();
    case 4: return counted.template operator()<std::uint32_t>();
    case 8: return counted.template operator()<uint2>();
    case 16: return counted.template operator()<uint4>();
    default: return kErrorUnsupported;
  }
}

}  // namespace dlbridge::nd::cuda_kernels
