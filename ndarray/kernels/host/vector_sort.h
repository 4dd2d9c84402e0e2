// Sorts of numbers on machines with AVX-512 or AVX2: quicksorts whose partitions and short sorts are made of vectors.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

template <class T>
struct VectorSort {
  void (*sort)(T* data, std::int64_t n) noexcept;
  // Afterwards data[k] is what it would be sorted, nothing before it is larger and nothing behind it smaller.
  void (*select)(T* data, std::int64_t n, std::int64_t k) noexcept;
};

// Of numbers of 32 or 64 bits, floats without NaN, negative zeros and subnormal numbers; null where the machine has no
// such vectors, and for floats without AVX-512.
template <class T>
const VectorSort<T>* find_vector_sort() noexcept;

}  // namespace dlbridge::nd::host_kernels
