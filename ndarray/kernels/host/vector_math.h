// Elementary functions a vector at a time: our own (exp_log.h), and those of glibc's libmvec, where the machine and its
// C library have them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ndarray/kernels/ops.h"

namespace dlbridge::nd::host_kernels {

inline constexpr std::int64_t kBlock = 64;  // elements that a loop does in one go
inline constexpr std::int64_t kGrain = 16;  // and at the end of a row: those of the widest vector

// Calls run(first, how many) for the blocks of `count` elements, a multiple of kGrain; how many is a constant.
template <class Run>
void for_each_block(std::int64_t count, Run run) noexcept {
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) run(i, std::integral_constant<std::int64_t, kBlock>());
  for (; i < count; i += kGrain) run(i, std::integral_constant<std::int64_t, kGrain>());
}

// out[j] = f(in[j]), or f(in[j], second[j]), for j < count, a multiple of kGrain; `out` may be an input.
template <class T>
struct VectorFunction {
  void (*run)(void* function, const T* in, const T* second, T* out, std::int64_t count) noexcept;
  void* function;
  void operator()(const T* in, T* out, std::int64_t count) const noexcept { run(function, in, nullptr, out, count); }
  void operator()(const T* in, const T* second, T* out, std::int64_t count) const noexcept {
    run(function, in, second, out, count);
  }
};

// The function that computes in T; null where it is not to be had. Any thread may ask; what is found stays.
template <class T>
const VectorFunction<T>* find_vector_function(Op op) noexcept;
extern template const VectorFunction<float>* find_vector_function<float>(Op op) noexcept;
extern template const VectorFunction<double>* find_vector_function<double>(Op op) noexcept;

// Whether it errs little enough for results of `dtype`.
bool is_accurate_in_vectors(Op op, DType dtype) noexcept;

}  // namespace dlbridge::nd::host_kernels
