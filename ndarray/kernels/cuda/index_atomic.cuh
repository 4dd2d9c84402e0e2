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

// Makes what stands at `to` next(what stands there), where that is something else: with no other write in between.
template <class T, class Next>
__device__ inline void exchange(T* to, Next next) {
  using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long,
                                  std::conditional_t<sizeof(T) == 2, unsigned short, unsigned>>;
  // A byte lies in a word of four.
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  auto* const word = reinterpret_cast<Word*>(address & ~std::uintptr_t{sizeof(Word) - 1});
  const unsigned shift = sizeof(T) == 1 ? static_cast<unsigned>(address & 3) * 8 : 0;
  const Word mask = static_cast<Word>(static_cast<Word>(static_cast<Bits>(~Bits{0})) << shift);
  Word old = *static_cast<volatile Word*>(word);
  for (;;) {
    const auto bits = static_cast<Bits>(old >> shift);
    T element;
    memcpy(&element, &bits, sizeof element);
    const T wanted = cast<T>(next(load(&element)));
    const auto wanted_bits = bits_as<Bits>(wanted);
    if (wanted_bits == bits) return;
    const Word seen =
        atomicCAS(word, old, static_cast<Word>((old & ~mask) | (static_cast<Word>(wanted_bits) << shift)));
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
