// The vector kernel of elementwise operations; elementwise.cuh says what it takes.
#pragma once

#include "ndarray/kernels/cuda/elementwise_types.cuh"
#include "ndarray/kernels/functors/packed_bytes.h"

namespace dlbridge::nd::cuda_kernels {

template <class T, int n>
struct alignas(sizeof(T) * n) Vector {
  T values[n];
};

template <int operands, int unroll>
struct VectorOffsets {
  std::int64_t bytes[operands][unroll];
};

// Where a thread's vectors lie. Vectors past the end point at the last one: they are read, but not written.
template <int operands, int unroll>
DLBRIDGE_ND_HD inline VectorOffsets<operands, unroll> vector_offsets(const VectorParams& p, std::int64_t first,
                                                                     std::uint32_t thread) noexcept {
  constexpr std::uint32_t kAll = unroll * kBlockThreads;
  VectorOffsets<operands, unroll> offsets;
  const std::int64_t left = p.count - first;
  const std::uint32_t last = left >= kAll ? kAll - 1 : static_cast<std::uint32_t>(left) - 1;
  std::uint32_t local[unroll];
#pragma unroll
  for (int u = 0; u < unroll; ++u) {
    const std::uint32_t mine = thread + static_cast<std::uint32_t>(u * kBlockThreads);
    local[u] = mine < last ? mine : last;
  }
  if (p.ndim == 1) {
#pragma unroll
    for (int k = 0; k < operands; ++k)
#pragma unroll
      for (int u = 0; u < unroll; ++u) offsets.bytes[k][u] = (first + local[u]) * p.strides[k][0];
    return offsets;
  }
  std::int32_t at[operands][unroll] = {};
#pragma unroll
  for (int u = 0; u < unroll; ++u) local[u] += static_cast<std::uint32_t>(first);
  int d = 0;
#pragma unroll 1
  for (; d < p.ndim - 1; ++d) {
    const Divider divider = p.dims[d];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const std::uint32_t quotient = divider.quotient(local[u]);
      const auto index = static_cast<std::int32_t>(local[u] - quotient * divider.divisor);
      local[u] = quotient;
#pragma unroll
      for (int k = 0; k < operands; ++k) at[k][u] += index * p.strides[k][d];
    }
  }
#pragma unroll
  for (int k = 0; k < operands; ++k)
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      offsets.bytes[k][u] = at[k][u] + static_cast<std::int32_t>(local[u]) * p.strides[k][d];
  return offsets;
}

// How a thread holds n elements: one by one, or, for operations that take four bytes at once, in words.
template <bool packed, class T, int n>
using Held = std::conditional_t<packed, Vector<std::uint32_t, n / 4>, Vector<T, n>>;

template <class T, class Held, int unroll, int operands>
DLBRIDGE_ND_HD inline void load_vectors(const VectorParams& p, int k, const VectorOffsets<operands, unroll>& offsets,
                                        Held (&out)[unroll]) noexcept {
  using Part = std::remove_reference_t<decltype(out[0].values[0])>;
  const char* const base = p.data[k];
  if (p.access[k] == Access::kDirect) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) out[u] = *reinterpret_cast<const Held*>(base + offsets.bytes[k][u]);
    return;
  }
  Part repeated[unroll];
#pragma unroll
  for (int u = 0; u < unroll; ++u) {
    const T element = p.access[k] == Access::kScalar ? scalar_of<T>(p.scalars[k])
                                                     : *reinterpret_cast<const T*>(base + offsets.bytes[k][u]);
    if constexpr (std::is_same_v<Part, T>) repeated[u] = element;
    else repeated[u] = static_cast<std::uint8_t>(element) * 0x01010101u;
  }
#pragma unroll
  for (int u = 0; u < unroll; ++u)
#pragma unroll
    for (Part& part : out[u].values) part = repeated[u];
}

// A thread's vectors of every input.
template <int k, class Held, int unroll>
struct VectorSlot {
  Held vectors[unroll];
};
template <class S, int n, int unroll, class Inputs, class Indices>
struct VectorSlots;
template <class S, int n, int unroll, class... In, int... k>
struct VectorSlots<S, n, unroll, TypeList<In...>, std::integer_sequence<int, k...>>
    : VectorSlot<k + 1, Held<has_packed_bytes<typename S::F>, In, n>, unroll>... {
  using R = typename S::R;
  static constexpr bool packed = has_packed_bytes<typename S::F>;
  template <int operand, class T>
  using Slot = VectorSlot<operand, Held<packed, T, n>, unroll>;
  using Result = Held<packed, R, n>;

  template <int operands>
  DLBRIDGE_ND_HD void load(const VectorParams& p, const VectorOffsets<operands, unroll>& offsets) noexcept {
    (load_vectors<In>(p, k + 1, offsets, Slot<k + 1, In>::vectors), ...);
  }
  DLBRIDGE_ND_HD Result apply(int u) const noexcept {
    Result result;
    if constexpr (packed) {
#pragma unroll
      for (int w = 0; w < n / 4; ++w)
        result.values[w] = PackedBytes<typename S::F>::apply(Slot<k + 1, In>::vectors[u].values[w]...);
    } else {
#pragma unroll
      for (int j = 0; j < n; ++j)
        result.values[j] = to_storage<R>(typename S::F{}(argument<S::raw>(Slot<k + 1, In>::vectors[u].values[j])...));
    }
    return result;
  }
  // The element `index`, of a 1-D loop.
  DLBRIDGE_ND_HD static R apply_at(const VectorParams& p, std::int64_t index) noexcept {
    return to_storage<R>(typename S::F{}(argument<S::raw>(
        p.access[k + 1] == Access::kScalar
            ? scalar_of<In>(p.scalars[k + 1])
            : reinterpret_cast<const In*>(p.data[k + 1])[p.access[k + 1] == Access::kDirect ? index : 0])...));
  }
};

template <class S, int n, int unroll>
DLBRIDGE_ND_HD inline void vector_body(const VectorParams& p, std::uint32_t block, std::uint32_t thread) noexcept {
  using R = typename S::R;
  using Slots = VectorSlots<S, n, unroll, typename S::Inputs, std::make_integer_sequence<int, S::inputs>>;
  using Result = typename Slots::Result;
  const std::int64_t first = std::int64_t{block} * (unroll * kBlockThreads);
  if (first < p.count) {
    const auto offsets = vector_offsets<S::inputs + 1, unroll>(p, first, thread);
    Slots slots;
    slots.load(p, offsets);
    Result results[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) results[u] = slots.apply(u);
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (first + thread + u * kBlockThreads < p.count)
        *reinterpret_cast<Result*>(p.data[0] + offsets.bytes[0][u]) = results[u];
  }
  const bool last_block = first + unroll * kBlockThreads >= p.count;
  if (last_block && thread < static_cast<std::uint32_t>(p.tail)) {
    const std::int64_t index = p.count * n + thread;
    reinterpret_cast<R*>(p.data[0])[index] = Slots::apply_at(p, index);
  }
}

template <class S, int n, int unroll>
__global__ void __launch_bounds__(kBlockThreads) vector_kernel(const __grid_constant__ VectorParams p) {
  vector_body<S, n, unroll>(p, blockIdx.x, threadIdx.x);
}

}  // namespace dlbridge::nd::cuda_kernels
