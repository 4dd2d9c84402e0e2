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

#include "ndarray/core/kernel_api.h"
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
  static constexpr bool kSmallBatches = false;  // one vector a batch: more would cost registers
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
  if (dtype == DType::kFloat32)
    *static_cast<float*>(out) = static_cast<float>(value);
  else if (dtype == DType::kFloat64)
    *static_cast<double*>(out) = static_cast<double>(value);
  else if (dtype == DType::kFloat16)
    *static_cast<float16*>(out) = to_float16(static_cast<float>(value));
  else
    *static_cast<bfloat16*>(out) = to_bfloat16(static_cast<float>(value));
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
  if constexpr (is_complex_v<T>)
    return x.real() != x.real() || x.imag() != x.imag();
  else if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

// NumPy orders complex numbers by the real part, then the imaginary part.
template <class T>
DLBRIDGE_ND_HD inline bool less(T a, T b) noexcept {
  if constexpr (is_complex_v<T>)
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else
    return a < b;
}

template <class T>
DLBRIDGE_ND_HD inline T multiply(T a, T b) noexcept {
  if constexpr (is_complex_v<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return static_cast<T>(a * b);
}

#if defined(__CUDACC__)
#define DLBRIDGE_ND_NOINLINE __noinline__  // a hypot of some hundred instructions at every place costs compile time
#else
#define DLBRIDGE_ND_NOINLINE
#endif
template <class R>
DLBRIDGE_ND_HD DLBRIDGE_ND_NOINLINE R magnitude(complex<R> x) noexcept {
  using std::hypot;
  return hypot(x.real(), x.imag());
}
template <class T>
DLBRIDGE_ND_HD inline real_t<T> squared_magnitude(T x) noexcept {
  if constexpr (is_complex_v<T>)
    return x.real() * x.real() + x.imag() * x.imag();
  else
    return x * x;
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

// 64 bits for integers and bool: sums and products modulo 2^64 do not depend on the sign.
template <class T>
using sum_acc_t = std::conditional_t<std::is_integral_v<T>, std::int64_t, arith_t<T>>;

template <class T>
struct Sum : Reduction {
  using In = T;
  using Acc = sum_acc_t<T>;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return Acc(0); }
  DLBRIDGE_ND_HD static Acc merge(Acc a, Acc b) noexcept {
    if constexpr (std::is_integral_v<Acc>)
      return static_cast<Acc>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return a + b;
  }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept { acc = merge(acc, cast<Acc>(x)); }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    if constexpr (std::is_integral_v<In> && sizeof(In) <= 2) {
      int sum = 0;  // N elements of 16 bits fit
      for (int i = 0; i < N; ++i) sum += x[i];
      acc += sum;
    } else if constexpr (std::is_integral_v<In>) {
      for (int i = 0; i < N; ++i) acc = merge(acc, static_cast<Acc>(x[i]));
    } else {
      Acc values[N];
      for (int i = 0; i < N; ++i) values[i] = cast<Acc>(x[i]);
      acc = merge(acc, tree(values, merge));
    }
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc = merge(acc, other); }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    if constexpr (std::is_integral_v<Acc>) {
      if (op == ReduceOp::kMean)
        store_real(static_cast<double>(acc) / static_cast<double>(n), out_address, out);
      else
        store_value(acc, out_address);
    } else {
      if (op == ReduceOp::kMean) acc = acc / static_cast<real_t<Acc>>(n);
      if constexpr (is_complex_v<Acc>)
        store_value(acc, out_address);
      else
        store_real(acc, out_address, out);
    }
  }
};

template <class T>
struct Prod : Reduction {
  using In = T;
  using Acc = sum_acc_t<T>;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return Acc(1); }
  DLBRIDGE_ND_HD static Acc merge(Acc a, Acc b) noexcept {
    if constexpr (std::is_integral_v<Acc>)
      return static_cast<Acc>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else
      return multiply(a, b);
  }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept { acc = merge(acc, cast<Acc>(x)); }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    if constexpr (std::is_integral_v<In>) {
      for (int i = 0; i < N; ++i) acc = merge(acc, static_cast<Acc>(x[i]));
    } else {
      Acc values[N];
      for (int i = 0; i < N; ++i) values[i] = cast<Acc>(x[i]);
      acc = merge(acc, tree(values, merge));
    }
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc = merge(acc, other); }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    if constexpr (std::is_integral_v<Acc> || is_complex_v<Acc>)
      store_value(acc, out_address);
    else
      store_real(acc, out_address, out);
  }
};

// Values that max and argmax compare: 16-bit floats as float, small integers in 32 bits (a shuffle's word).
template <class T>
using order_t = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4,
                                   std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>, arith_t<T>>;

template <class T>
DLBRIDGE_ND_HD constexpr T lowest() noexcept {
  if constexpr (is_complex_v<T>)
    return T(lowest<real_t<T>>(), lowest<real_t<T>>());
  else if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

// The larger of two; NaN if either is NaN.
template <class T>
DLBRIDGE_ND_HD inline T larger(T a, T b) noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
  if constexpr (std::is_integral_v<T>)
    return a < b ? b : a;
  else if constexpr (is_complex_v<T>)
    return is_nan(a) || (!is_nan(b) && less(b, a)) ? a : b;
  else
    return static_cast<bool>((b < a) | (a != a)) ? a : b;  // without branches; a comparison with NaN is false
}

// max, min, and the infinity norms of real dtypes; a functor for each sign would double the code.
template <class T>
struct Extreme : Reduction {
  using In = T;
  using Acc = order_t<T>;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return lowest<Acc>(); }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept { acc = larger(acc, cast<Acc>(x)); }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    Acc values[N];
    DLBRIDGE_ND_UNROLL
    for (int i = 0; i < N; ++i) values[i] = cast<Acc>(x[i]);
    // A lambda: as a pointer to larger() it would be called, not inlined (measured on an H200: a third of the speed).
    acc = larger(acc, tree(values, [](Acc a, Acc b) { return larger(a, b); }));
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc = larger(acc, other); }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    const In value = prepare(cast<In>(acc), BitPrep{~std::uint64_t{0}, prep.flip});
    if constexpr (is_float_v<In>)
      store_real(cast<Acc>(value), out_address, out);
    else
      store_value(value, out_address);
  }
};

template <class T>
struct ArgExtreme : Reduction {
  static constexpr bool kSmallBatches = true;
  using In = T;
  using Value = order_t<T>;
  struct Acc {
    Value value;
    std::int64_t position;
  };
  DLBRIDGE_ND_HD Acc identity() const noexcept {
    return {lowest<Value>(), std::numeric_limits<std::int64_t>::max()};
  }
  // The first NaN, else the first of the largest.
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept {
    const bool nan = is_nan(acc.value), other_nan = is_nan(other.value);
    const bool first = other.position < acc.position;
    const bool tie = nan ? other_nan : !other_nan && !less(other.value, acc.value) && !less(acc.value, other.value);
    if (tie ? first : other_nan || (!nan && less(acc.value, other.value))) acc = other;
  }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t position) const noexcept {
    combine(acc, Acc{cast<Value>(x), position});
  }
  // Most batches hold nothing better than what was seen: one comparison an element tells.
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions position) const noexcept {
    bool candidate = false;
    if constexpr (is_complex_v<T>) {
      candidate = true;
    } else {
      Value values[N];
      DLBRIDGE_ND_UNROLL
      for (int i = 0; i < N; ++i) values[i] = cast<Value>(x[i]);
      const Value best = tree(values, [](Value a, Value b) { return larger(a, b); });
      if (ascending) {
        if (is_nan(acc.value)) return;
        candidate = !(best <= acc.value) || acc.position == std::numeric_limits<std::int64_t>::max();
      } else {
        candidate = !(best < acc.value);
      }
    }
    if (candidate)
      for (int i = 0; i < N; ++i) add(acc, x[i], position(i));
  }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    *static_cast<std::int64_t*>(out_address) = acc.position;
  }
};

// count_nonzero, any, all, and the sum and product of bool, all from one count over the elements' bits.
template <class Bits>
struct Count : Reduction {
  using In = Bits;
  using Acc = std::int64_t;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return 0; }
  DLBRIDGE_ND_HD static int nonzero(In x) noexcept {
    if constexpr (std::is_same_v<In, Bits128>)
      return (x.low | x.high) != 0;
    else
      return x != 0;
  }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept { acc += nonzero(x); }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    int count = 0;
    for (int i = 0; i < N; ++i) count += nonzero(x[i]);
    acc += count;
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc += other; }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    switch (op) {
      case ReduceOp::kAny: *static_cast<bool*>(out_address) = acc != 0; break;
      case ReduceOp::kAll: *static_cast<bool*>(out_address) = acc == n; break;
      case ReduceOp::kProd: *static_cast<std::int64_t*>(out_address) = acc == n ? 1 : 0; break;
      case ReduceOp::kMean:
        store_real(static_cast<double>(acc) / static_cast<double>(n), out_address, out);
        break;
      default: *static_cast<std::int64_t*>(out_address) = acc; break;
    }
  }
};

// var and std by Welford's update, a batch at a time, merged by Chan's formula: one pass over memory, and no
// cancellation, wherever the data lies (sums of squares lose it far from 0, a shift by the first element at outliers).
// Complex: the mean of |x - mean|^2.
template <class T>
struct Moments : Reduction {
  using In = T;
  using Value = arith_t<T>;
  using Real = real_t<Value>;
  struct Acc {
    std::int64_t count;
    Value mean;
    Real m2;
  };
  DLBRIDGE_ND_HD Acc identity() const noexcept { return {0, Value(0), Real(0)}; }
  DLBRIDGE_ND_HD void combine(Acc& acc, const Acc& other) const noexcept {
    if (other.count == 0) return;
    if (acc.count == 0) {
      acc = other;
      return;
    }
    const std::int64_t count = acc.count + other.count;
    const Real share = static_cast<Real>(other.count) / static_cast<Real>(count);
    const Value delta = other.mean - acc.mean;
    acc.mean += delta * share;
    acc.m2 += other.m2 + squared_magnitude(delta) * (static_cast<Real>(acc.count) * share);
    acc.count = count;
  }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept {
    const Value value = cast<Value>(x);
    // A first element must not meet a mean of 0: infinity and NaN aside, its own mean is exact.
    combine(acc, Acc{1, value, Real(0)});
  }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    Value values[N];
    for (int i = 0; i < N; ++i) values[i] = cast<Value>(x[i]);
    const Value mean = tree(values, Sum<Value>::merge) * (Real(1) / Real(N));
    Real squares[N];
    for (int i = 0; i < N; ++i) squares[i] = squared_magnitude(cast<Value>(x[i]) - mean);
    combine(acc, Acc{N, mean, tree(squares, Sum<Real>::merge)});
  }
  DLBRIDGE_ND_HD void store(const Acc& acc, void* out_address) const noexcept {
    using std::sqrt;
    const double divisor = static_cast<double>(n) - correction;
    // The mean of an infinity or a NaN is no number, and neither is the variance; mean - mean is 0 otherwise.
    const Value spread = acc.mean - acc.mean;
    Real value = (acc.m2 + squared_magnitude(spread)) / static_cast<Real>(divisor > 0 ? divisor : 0);
    if (op == ReduceOp::kStd) value = sqrt(value);
    store_real(value, out_address, out);
  }
};

// Sums and maxima of a real function of the element: norm2 of all dtypes, norm1 and the infinity norms of complex ones.
template <class T>
struct SumSquares : Reduction {
  using In = T;
  using Acc = real_t<arith_t<T>>;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return Acc(0); }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept {
    acc += squared_magnitude(cast<arith_t<T>>(x));
  }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    Acc values[N];
    for (int i = 0; i < N; ++i) values[i] = squared_magnitude(cast<arith_t<T>>(x[i]));
    acc += tree(values, Sum<Acc>::merge);
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc += other; }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    using std::sqrt;
    store_real(sqrt(acc), out_address, out);
  }
};

template <class T>
struct SumAbs : Reduction {
  using In = T;
  using Acc = real_t<T>;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return Acc(0); }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept { acc += magnitude(x); }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    Acc values[N];
    for (int i = 0; i < N; ++i) values[i] = magnitude(x[i]);
    acc += tree(values, Sum<Acc>::merge);
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc += other; }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept { store_real(acc, out_address, out); }
};

template <class T>
struct MaxAbs : Reduction {
  using In = T;
  using Acc = real_t<T>;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return lowest<Acc>(); }
  DLBRIDGE_ND_HD Acc value_of(In x) const noexcept { return op == ReduceOp::kNormMinusInf ? -magnitude(x) : magnitude(x); }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept { acc = larger(acc, value_of(x)); }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    Acc values[N];
    for (int i = 0; i < N; ++i) values[i] = value_of(x[i]);
    acc = larger(acc, tree(values, larger<Acc>));
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, Acc other) const noexcept { acc = larger(acc, other); }
  DLBRIDGE_ND_HD void store(Acc acc, void* out_address) const noexcept {
    store_real(op == ReduceOp::kNormMinusInf ? -acc : acc, out_address, out);
  }
};

}  // namespace dlbridge::nd::functors

#undef DLBRIDGE_ND_UNROLL
#undef DLBRIDGE_ND_NOINLINE
