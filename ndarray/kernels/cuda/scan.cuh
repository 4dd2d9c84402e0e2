// Scans on CUDA. Rows that are contiguous: a block walks a row tile by tile where rows are many, a few lanes do where
// they are short too; few long rows are cut into tiles, whose totals are scanned first. Columns: a thread a column
// walks its rows; too few columns are cut into chunks likewise.
//
// Reading twice moves 3n instead of the 2n of a look-back, and repeats bit by bit, which the usual look-back does not:
// it adds up whatever its neighbours have ready. A look-back of fixed order was measured on an H200 and lost: 1,280
// GB/s of 2n, its tiles waiting for one another at three levels.
#pragma once

#include "ndarray/kernels/cuda/lanes.cuh"
#include "ndarray/kernels/cuda/launch.cuh"
#include "ndarray/kernels/cuda/on_dtype.cuh"
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/reduce_route.h"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kScanThreads = 256;
inline constexpr int kScanWarp = 32;

struct SumScan {
  template <class T>
  __device__ static T identity() {
    return T(0);
  }
  template <class T>
  __device__ static T merge(T a, T b) {
    return functors::Sum<T>::merge(a, b);
  }
};
struct ProdScan {
  template <class T>
  __device__ static T identity() {
    return T(1);
  }
  template <class T>
  __device__ static T merge(T a, T b) {
    return functors::Prod<T>::merge(a, b);
  }
};

// --- elements in memory ----------------------------------------------------------------------------------------------

// Words, not bytes: nvcc 13.0 takes the bytes of a 16-bit float apart by converting the number (seen on an H200).
template <std::size_t Bytes>
struct alignas(Bytes < 16 ? Bytes : 16) Chunk {
  using Word =
      std::conditional_t<Bytes % 4 == 0, unsigned, std::conditional_t<Bytes % 2 == 0, unsigned short, unsigned char>>;
  Word words[Bytes / sizeof(Word)];
};

// kVector elements at a time, moved as the widest words that they fill.
template <class T, int kVector>
__device__ inline void load_vector(const void* p, T (&x)[kVector]) {
  const Chunk<sizeof(T) * kVector> raw = *static_cast<const Chunk<sizeof(T) * kVector>*>(p);
  memcpy(x, &raw, sizeof(raw));
}
template <class T, int kVector>
__device__ inline void store_vector(void* p, const T (&x)[kVector]) {
  Chunk<sizeof(T) * kVector> raw;
  memcpy(&raw, x, sizeof(raw));
  *static_cast<Chunk<sizeof(T) * kVector>*>(p) = raw;
}

// Single elements: complex numbers in their parts, for they may be aligned to those alone.
template <class T>
__device__ inline T load_one(const T* p) {
  if constexpr (is_complex_v<T>) {
    const real_t<T>* parts = reinterpret_cast<const real_t<T>*>(p);
    return T(parts[0], parts[1]);
  } else {
    return *p;
  }
}

// The input's and the output's dtype; elements are cast to the accumulator's type on load and from it on store.
struct ScanTypes {
  static constexpr bool kNative = false;
  DType in, out;
  std::uint8_t out_size;
  bool native;   // both are the accumulator's own
  bool aligned;  // both bases take whole vectors
};
// For those that are native: kernels without the jumps over all dtypes need half of the registers.
struct NativeScanTypes {
  static constexpr bool kNative = true;
  bool aligned;
};

// The elements [low, high) of a vector at `index` exist; whole vectors are moved as one.
struct Span {
  std::int64_t index;
  int low, high;

  template <int V>
  __device__ bool whole() const {
    return low == 0 && high == V;
  }
};

template <class Op, class Types, class Acc, int R, int V>
__device__ inline void load_spans(const Types& types, const void* base, const Span (&spans)[R], Acc (&x)[R][V]) {
  const auto read = [&]<class T>() {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const auto* p = static_cast<const stored_t<T>*>(base) + spans[r].index;
      if (types.aligned && spans[r].template whole<V>()) {
        stored_t<T> raw[V];
        load_vector(p, raw);
#pragma unroll
        for (int i = 0; i < V; ++i) x[r][i] = cast<Acc>(raw[i]);
      } else {
#pragma unroll
        for (int i = 0; i < V; ++i)
          x[r][i] = i >= spans[r].low && i < spans[r].high ? cast<Acc>(load_one(p + i)) : Op::template identity<Acc>();
      }
    }
  };
  if constexpr (Types::kNative) read.template operator()<Acc>();
  else on_dtype(types.in, read);
}

template <class Types, class Acc, int V>
__device__ inline void store_span(const Types& types, void* base, const Span& span, const Acc (&x)[V]) {
  const auto write = [&]<class T>() {
    T* p = static_cast<T*>(base) + span.index;
    if (types.aligned && span.template whole<V>()) {
      T raw[V];
#pragma unroll
      for (int i = 0; i < V; ++i) raw[i] = cast<T>(x[i]);
      store_vector(p, raw);
    } else {
#pragma unroll
      for (int i = 0; i < V; ++i)
        if (i >= span.low && i < span.high) functors::store_value(cast<T>(x[i]), p + i);
    }
  };
  if constexpr (Types::kNative) {
    write.template operator()<Acc>();
  } else if constexpr (std::is_integral_v<Acc>) {  // modulo 2^64 is modulo any narrower width
    if (types.out_size == 8) return write.template operator()<std::uint64_t>();
    if (types.out == DType::kBool) return write.template operator()<bool>();
    if (types.out_size == 4) return write.template operator()<std::uint32_t>();
    if (types.out_size == 2) return write.template operator()<std::uint16_t>();
    return write.template operator()<std::uint8_t>();
  } else {
    if constexpr (std::is_same_v<Acc, float>) {
      if (types.out == DType::kFloat16) return write.template operator()<float16>();
      if (types.out == DType::kBFloat16) return write.template operator()<bfloat16>();
    }
    return write.template operator()<Acc>();
  }
}

// --- between lanes and blocks ----------------------------------------------------------------------------------------

// Scans `total` over groups of `width` lanes; returns what the lanes before contribute, and the group's total.
template <class Op, class T>
__device__ inline T scan_lanes(T& total, int lane, int width) {
  for (int delta = 1; delta < width; delta *= 2) {
    const T before = shuffle_up(total, delta, width);
    if (lane >= delta) total = Op::merge(before, total);
  }
  const T inclusive = total;
  const T before = shuffle_up(inclusive, 1, width);
  total = shuffle_from(inclusive, width - 1, width);
  return lane == 0 ? Op::template identity<T>() : before;
}

}  // namespace dlbridge::nd::cuda_kernels
