// Elements on their way to a reduction: as they lie, several in a vector, or cast from another dtype.
#pragma once

#include "ndarray/kernels/cuda/on_dtype.cuh"
#include "ndarray/kernels/functors/reduce.h"

namespace dlbridge::nd::cuda_kernels {

template <std::size_t Bytes>
struct alignas(Bytes) Words {
  unsigned words[Bytes / 4];
};

template <std::size_t Bytes>
__device__ inline Words<Bytes> load_words(const char* p) {
  Words<Bytes> result;
  if constexpr (Bytes == 16) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(p));
    result = {v.x, v.y, v.z, v.w};
  } else {
    static_assert(Bytes == 8);
    const uint2 v = __ldg(reinterpret_cast<const uint2*>(p));
    result = {v.x, v.y};
  }
  return result;
}

// Prepares the bits of several elements at once (BitPrep repeats itself over 64 bits) and takes them apart.
template <class In, int N, std::size_t Bytes>
__device__ inline void unpack(Words<Bytes> raw, const functors::BitPrep& prep, In* x) {
  static_assert(sizeof(In) * N == Bytes);
  const unsigned keep[2] = {static_cast<unsigned>(prep.keep), static_cast<unsigned>(prep.keep >> 32)};
  const unsigned flip[2] = {static_cast<unsigned>(prep.flip), static_cast<unsigned>(prep.flip >> 32)};
#pragma unroll
  for (int i = 0; i < static_cast<int>(Bytes / 4); ++i) raw.words[i] = (raw.words[i] & keep[i % 2]) ^ flip[i % 2];
  memcpy(x, &raw, Bytes);
}

template <class In>
__device__ inline In load_element(const char* p, bool aligned) {
  if constexpr (is_complex_v<In>) {
    if (!aligned) {
      const real_t<In>* parts = reinterpret_cast<const real_t<In>*>(p);
      return In(parts[0], parts[1]);
    }
  }
  if constexpr (sizeof(In) == 16) {
    const Words<16> raw = load_words<16>(p);
    In x;
    memcpy(&x, &raw, 16);
    return x;
  } else {
    return *reinterpret_cast<const In*>(p);
  }
}

// Elements as they are.
struct NativeLoader {
  template <class In, int U, int V>
  __device__ void load(const char* const (&p)[U], const functors::BitPrep& prep, bool aligned, In (&x)[U][V]) const {
    if constexpr (V == 1) {
#pragma unroll
      for (int u = 0; u < U; ++u) x[u][0] = load_element<In>(p[u], aligned);
#pragma unroll
      for (int u = 0; u < U; ++u) x[u][0] = functors::prepare(x[u][0], prep);
    } else {
      constexpr std::size_t kBytes = sizeof(In) * V;
      Words<kBytes> raw[U];
#pragma unroll
      for (int u = 0; u < U; ++u) raw[u] = load_words<kBytes>(p[u]);
#pragma unroll
      for (int u = 0; u < U; ++u) unpack<In, V>(raw[u], prep, x[u]);
    }
  }
};

// Elements of any dtype, cast to In.
struct CastLoader {
  DType dtype;

  template <class In, int U>
  __device__ void load(const char* const (&p)[U], const functors::BitPrep& prep, bool aligned, In (&x)[U][1]) const {
    on_dtype(dtype, [&]<class T>() {
      stored_t<T> raw[U];
#pragma unroll
      for (int u = 0; u < U; ++u) raw[u] = load_element<stored_t<T>>(p[u], aligned);
#pragma unroll
      for (int u = 0; u < U; ++u) x[u][0] = functors::prepare(cast<In>(raw[u]), prep);
    });
  }
};

}  // namespace dlbridge::nd::cuda_kernels
