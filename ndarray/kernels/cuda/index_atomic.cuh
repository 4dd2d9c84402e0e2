// Atomic operations on elements of every dtype: sums of integers, and extremes.
#pragma once

#include <cstdint>
#include <cstring>

#include "ndarray/kernels/functors/index_plan.h"

namespace dlbridge::nd::cuda_kernels {

// Whether `value` takes the place of `old`. Of zeros it is told by the sign, so that it does not show which came first.
template <Op op, class A>
__device__ inline bool beats(A value, A old) {
  if (fn::is_nan(old)) return false;
  if (fn::is_nan(value)) return true;
  const A &low = op == Op::kMaximum ? old : value, &high = op == Op::kMaximum ? value : old;
  if (fn::equal(low, high)) return fn::signbit(low) && !fn::signbit(high);
  return fn::less(low, high);
}

// Whether an element is exchanged by itself. A byte is not: the word around it may end outside of its memory.
template <class T>
inline constexpr bool is_atomic = !is_complex_v<T> && sizeof(T) > 1;

// Makes what stands at `to` next(what stands there), where that is something else: with no other write in between.
template <class T, class Next>
__device__ inline void exchange(T* to, Next next) {
  static_assert(is_atomic<T>);
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long,
                                  std::conditional_t<sizeof(T) == 2, unsigned short, unsigned>>;
  auto* const word = reinterpret_cast<Word*>(to);
  Word old = *static_cast<volatile Word*>(word);
  for (;;) {
    const T element = bits_as<T>(old);
    const auto wanted = bits_as<Word>(cast<T>(next(load(&element))));
    if (wanted == old) return;
    const Word seen = atomicCAS(word, old, wanted);
    if (seen == old) return;
    old = seen;
  }
}

template <Op op, class T>
__device__ inline void combine_at(T* to, arith_t<T> value) {
  if constexpr (op == Op::kAdd && sizeof(T) == 4) atomicAdd(reinterpret_cast<unsigned*>(to), value);
  else if constexpr (op == Op::kAdd && sizeof(T) == 8) atomicAdd(reinterpret_cast<unsigned long long*>(to), value);
  else if constexpr (op == Op::kAdd) exchange(to, [value](arith_t<T> old) { return combined<op, T>(old, value); });
  else exchange(to, [value](arith_t<T> old) { return beats<op>(value, old) ? value : old; });
}

}  // namespace dlbridge::nd::cuda_kernels
