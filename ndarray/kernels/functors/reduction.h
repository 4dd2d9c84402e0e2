// The reductions as functors: what one element adds to an accumulator, how two accumulators merge, and what is stored.
// Host loops and CUDA kernels drive the same functors; an engine feeds them batches of elements in registers.
//
// A functor has: In (what is loaded), Acc (trivially copyable, a multiple of four bytes), identity(), add(acc, x,
// position), add_batch<N>(acc, x[N], positions), combine(acc, other) and store(acc, out). Merging is associative up to
// rounding; the engines fix the order of merging by shape, so that results repeat bit by bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/functors/arithmetic.h"
#include "ndarray/kernels/types.h"

#if defined(__CUDACC__)
#define DLBRIDGE_ND_UNROLL _Pragma("unroll")
#elif defined(__clang__)
#define DLBRIDGE_ND_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DLBRIDGE_ND_UNROLL _Pragma("GCC unroll 16")
#endif

namespace dlbridge::nd::functors {

// What happens to an element's bits before it is reduced: x = (x & keep) ^ flip, each replicated over 64 bits. It makes
// max serve min (reverse the order), norm1 a sum (drop the sign), norm_inf a max, count_nonzero ignore -0.0.
struct BitPrep {
  std::uint64_t keep = ~std::uint64_t{0};
  std::uint64_t flip = 0;
};

template <std::size_t Bytes>
using bits_t = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

// 16 bytes without a meaning but zero or not: complex128 for count_nonzero.
struct alignas(16) Bits128 {
  std::uint64_t low, high;
};

template <class T>
DLBRIDGE_ND_HD inline T prepare(T x, const BitPrep& prep) noexcept {
  using Bits = bits_t<sizeof(T)>;
  constexpr std::size_t kWords = sizeof(T) / sizeof(Bits);
  Bits words[kWords];
  memcpy(words, &x, sizeof(T));
  for (std::size_t i = 0; i < kWords; ++i)
    words[i] = static_cast<Bits>((words[i] & static_cast<Bits>(prep.keep)) ^ static_cast<Bits>(prep.flip));
  memcpy(&x, words, sizeof(T));
  return x;
}

constexpr std::uint64_t sign_bits(DType t) noexcept {
  switch (t) {
    case DType::kFloat16:
    case DType::kBFloat16: return 0x8000800080008000u;
    case DType::kFloat32:
    case DType::kComplex64: return 0x8000000080000000u;
    case DType::kFloat64:
    case DType::kComplex128: return 0x8000000000000000u;
    default: return 0;
  }
}

// The preparation for an operation that reads `in`. Complex magnitudes do not notice a changed sign; MaxAbs flips them.
constexpr BitPrep bit_prep(ReduceOp op, DType in) noexcept {
  const std::uint64_t sign = sign_bits(in);
  BitPrep prep;
  switch (op) {
    case ReduceOp::kMin:
    case ReduceOp::kArgmin: prep.flip = sign != 0 ? sign : ~std::uint64_t{0}; break;
    case ReduceOp::kAny:
    case ReduceOp::kAll:
    case ReduceOp::kCountNonzero:
    case ReduceOp::kNorm1:
    case ReduceOp::kNormInf: prep.keep = ~sign; break;
    case ReduceOp::kNormMinusInf:
      prep.keep = ~sign;
      prep.flip = sign;
      break;
    default: break;
  }
  return prep;
}

// The part of a call that the functors need, and the base of each.
struct Reduction {
  static constexpr bool kFindsLater = false;  // see ArgExtreme
  ReduceOp op;
  DType out;
  bool ascending;  // arg reductions: each accumulator sees positions in ascending order
  BitPrep prep;
  std::int64_t n;
  double correction;
};

// Real results: the four floats.
template <class R>
DLBRIDGE_ND_HD inline void store_real(R value, void* out, DType dtype) noexcept {
  if (dtype == DType::kFloat32) *static_cast<float*>(out) = static_cast<float>(value);
  else if (dtype == DType::kFloat64) *static_cast<double*>(out) = static_cast<double>(value);
  else if (dtype == DType::kFloat16) *static_cast<float16*>(out) = to_float16(static_cast<float>(value));
  else *static_cast<bfloat16*>(out) = to_bfloat16(static_cast<float>(value));
}

// Integers and complex numbers, as they are; outputs are aligned to the parts of a complex number at least.
template <class T>
DLBRIDGE_ND_HD inline void store_value(T value, void* out) noexcept {
  if constexpr (is_complex_v<T>) {
    static_cast<real_t<T>*>(out)[0] = value.real();
    static_cast<real_t<T>*>(out)[1] = value.imag();
  } else {
    *static_cast<T*>(out) = value;
  }
}

template <class T>
DLBRIDGE_ND_HD inline bool is_nan(T x) noexcept {
  if constexpr (is_complex_v<T>) return x.real() != x.real() || x.imag() != x.imag();
  else if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}

// NumPy orders complex numbers by the real part, then the imaginary part.
template <class T>
DLBRIDGE_ND_HD inline bool less(T a, T b) noexcept {
  if constexpr (is_complex_v<T>) return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else return a < b;
}

template <class T>
DLBRIDGE_ND_HD inline T multiply(T a, T b) noexcept {
  if constexpr (is_complex_v<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else return static_cast<T>(a * b);
}

#if defined(__CUDACC__)
#define DLBRIDGE_ND_NOINLINE __noinline__  // a hypot of some hundred instructions at every place costs compile time
#else
#define DLBRIDGE_ND_NOINLINE
#endif
template <class R>
DLBRIDGE_ND_HD DLBRIDGE_ND_NOINLINE R magnitude(complex<R> x) noexcept {
  return fn::hypot(x.real(), x.imag());
}
template <class T>
DLBRIDGE_ND_HD inline real_t<T> squared_magnitude(T x) noexcept {
  if constexpr (is_complex_v<T>) return x.real() * x.real() + x.imag() * x.imag();
  else return x * x;
}

// Merges N values pairwise: a short dependency chain, and less rounding error than a running sum.
// By recursion: the compiler did not unroll a loop of halvings around inline assembly, and the values went to local
// memory (measured on an H200: max at a third of the memory's speed).
template <int kHalf, int N, class Acc, class Merge>
DLBRIDGE_ND_HD inline void fold_halves(Acc (&values)[N], Merge merge) noexcept {
  if constexpr (kHalf > 0) {
    DLBRIDGE_ND_UNROLL
    for (int i = 0; i < kHalf; ++i) values[i] = merge(values[i], values[i + kHalf]);
    fold_halves<kHalf / 2>(values, merge);
  }
}
template <int N, class Acc, class Merge>
DLBRIDGE_ND_HD inline Acc tree(Acc (&values)[N], Merge merge) noexcept {
  static_assert((N & (N - 1)) == 0);
  fold_halves<N / 2>(values, merge);
  return values[0];
}

}  // namespace dlbridge::nd::functors
