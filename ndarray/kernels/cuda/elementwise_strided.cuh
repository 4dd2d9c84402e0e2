// The strided kernel of elementwise operations; elementwise.cuh says what it takes.
#pragma once

#include "ndarray/kernels/cuda/elementwise_types.cuh"

namespace dlbridge::nd::cuda_kernels {

template <int unroll>
struct Offsets {
  std::int32_t bytes[unroll];
};
template <class T, int unroll>
struct Values {
  T values[unroll];
};

// The casts of one operand. One function a compute type, not inlined: a dozen dtypes in every kernel would be most of
// the library. The dtype is the same for the whole grid, so that the branch costs little.
template <class C, int unroll>
__noinline__ DLBRIDGE_ND_HD Values<C, unroll> load_cast(const char* base, Offsets<unroll> offsets, DType dtype) {
  Values<C, unroll> out;
  const auto read = [&]<class T>() {
    stored_t<T> loaded[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) loaded[u] = *reinterpret_cast<const stored_t<T>*>(base + offsets.bytes[u]);
#pragma unroll
    for (int u = 0; u < unroll; ++u) out.values[u] = cast<C>(loaded[u]);
  };
  switch (dtype) {
#define DLBRIDGE_ND_CASE(id) \
  case DType::id: read.template operator()<type_of_t<DType::id>>(); break;
    DLBRIDGE_ND_CASE(kBool)
    DLBRIDGE_ND_CASE(kInt8)
    DLBRIDGE_ND_CASE(kInt16)
    DLBRIDGE_ND_CASE(kInt32)
    DLBRIDGE_ND_CASE(kInt64)
    DLBRIDGE_ND_CASE(kUInt8)
    DLBRIDGE_ND_CASE(kUInt16)
    DLBRIDGE_ND_CASE(kUInt32)
    DLBRIDGE_ND_CASE(kUInt64)
    DLBRIDGE_ND_CASE(kFloat16)
    DLBRIDGE_ND_CASE(kBFloat16)
    DLBRIDGE_ND_CASE(kFloat32)
    DLBRIDGE_ND_CASE(kFloat64)
    DLBRIDGE_ND_CASE(kComplex64)
    default: read.template operator()<type_of_t<DType::kComplex128>>(); break;
#undef DLBRIDGE_ND_CASE
  }
  return out;
}

// `written` says, by bits, which of the values are within the loop.
template <class R, int unroll>
__noinline__ DLBRIDGE_ND_HD void store_cast(char* base, Offsets<unroll> offsets, DType dtype, bool is_signed,
                                            std::uint32_t written, Values<R, unroll> in) {
  const auto write = [&]<class T>() {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      T value;
      if constexpr (std::is_unsigned_v<R> && !std::is_same_v<R, bool>)
        value = is_signed ? cast<T>(static_cast<std::make_signed_t<R>>(in.values[u])) : cast<T>(in.values[u]);
      else value = cast<T>(in.values[u]);
      if ((written >> u & 1) != 0) *reinterpret_cast<T*>(base + offsets.bytes[u]) = value;
    }
  };
  switch (dtype) {
#define DLBRIDGE_ND_CASE(id) \
  case DType::id: write.template operator()<type_of_t<DType::id>>(); break;
    DLBRIDGE_ND_CASE(kBool)
    case DType::kInt8: DLBRIDGE_ND_CASE(kUInt8)
    case DType::kInt16:
      DLBRIDGE_ND_CASE(kUInt16)
      DLBRIDGE_ND_CASE(kInt32)
      DLBRIDGE_ND_CASE(kInt64)
      DLBRIDGE_ND_CASE(kUInt32)
      DLBRIDGE_ND_CASE(kUInt64)
      DLBRIDGE_ND_CASE(kFloat16)
      DLBRIDGE_ND_CASE(kBFloat16)
      DLBRIDGE_ND_CASE(kFloat32)
      DLBRIDGE_ND_CASE(kFloat64)
      DLBRIDGE_ND_CASE(kComplex64)
    default: write.template operator()<type_of_t<DType::kComplex128>>(); break;
#undef DLBRIDGE_ND_CASE
  }
}

template <int k, class T, int unroll>
struct StridedSlot {
  Values<T, unroll> loaded;
};
template <class S, int unroll, class Inputs, class Indices>
struct StridedSlots;
template <class S, int unroll, class... In, int... k>
struct StridedSlots<S, unroll, TypeList<In...>, std::integer_sequence<int, k...>> : StridedSlot<k + 1, In, unroll>... {
  using R = typename S::R;

  DLBRIDGE_ND_HD void load(const StridedParams& p, const Offsets<unroll>* offsets) noexcept {
    (load_one<In>(p, k + 1, offsets[k + 1], StridedSlot<k + 1, In, unroll>::loaded), ...);
  }
  DLBRIDGE_ND_HD R apply(int u) const noexcept {
    return to_storage<R>(typename S::F{}(argument<S::raw>(StridedSlot<k + 1, In, unroll>::loaded.values[u])...));
  }

 private:
  template <class T>
  DLBRIDGE_ND_HD static void load_one(const StridedParams& p, int operand, const Offsets<unroll>& offsets,
                                      Values<T, unroll>& out) noexcept {
    const char* const base = p.data[operand];
    if (p.access[operand] == Access::kDirect) {
#pragma unroll
      for (int u = 0; u < unroll; ++u) out.values[u] = *reinterpret_cast<const T*>(base + offsets.bytes[u]);
    } else if (p.access[operand] == Access::kScalar) {
#pragma unroll
      for (int u = 0; u < unroll; ++u) out.values[u] = scalar_of<T>(p.scalars[operand]);
    } else {
      out = load_cast<T, unroll>(base, offsets, p.dtype[operand]);
    }
  }
};

template <class S, int unroll>
DLBRIDGE_ND_HD inline void strided_body(const StridedParams& p, std::uint32_t block, std::uint32_t thread) noexcept {
  using R = typename S::R;
  constexpr int operands = S::inputs + 1;
  const std::uint32_t first = block * (unroll * kBlockThreads) + thread;
  std::uint32_t rest[unroll];
  std::uint32_t written = 0;
  Offsets<unroll> offsets[operands] = {};
#pragma unroll
  for (int u = 0; u < unroll; ++u) {  // elements past the end are read as the last one
    const std::uint32_t index = first + static_cast<std::uint32_t>(u * kBlockThreads);
    rest[u] = index < p.size ? index : p.size - 1;
    written |= index < p.size ? 1u << u : 0u;
  }
  int d = 0;
#pragma unroll 1
  for (; d < p.ndim - 1; ++d) {
    const Divider divider = p.dims[d];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const std::uint32_t quotient = divider.quotient(rest[u]);
      const auto index = static_cast<std::int32_t>(rest[u] - quotient * divider.divisor);
      rest[u] = quotient;
#pragma unroll
      for (int k = 0; k < operands; ++k) offsets[k].bytes[u] += index * p.strides[k][d];
    }
  }
#pragma unroll
  for (int u = 0; u < unroll; ++u)
#pragma unroll
    for (int k = 0; k < operands; ++k) offsets[k].bytes[u] += static_cast<std::int32_t>(rest[u]) * p.strides[k][d];

  StridedSlots<S, unroll, typename S::Inputs, std::make_integer_sequence<int, S::inputs>> slots;
  slots.load(p, offsets);
  Values<R, unroll> results;
#pragma unroll
  for (int u = 0; u < unroll; ++u) results.values[u] = slots.apply(u);
  if (p.access[0] == Access::kDirect) {
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if ((written >> u & 1) != 0) *reinterpret_cast<R*>(p.data[0] + offsets[0].bytes[u]) = results.values[u];
  } else {
    store_cast<R, unroll>(p.data[0], offsets[0], p.dtype[0], p.result_signed, written, results);
  }
}

template <class S, int unroll>
__global__ void __launch_bounds__(kBlockThreads) strided_kernel(const __grid_constant__ StridedParams p) {
  strided_body<S, unroll>(p, blockIdx.x, threadIdx.x);
}

}  // namespace dlbridge::nd::cuda_kernels
