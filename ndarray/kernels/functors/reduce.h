// The functors of all reductions: sums, products, counts, moments and norms here, extremes in reduce_extreme.h.
#pragma once

#include "ndarray/kernels/functors/reduce_extreme.h"

namespace dlbridge::nd::functors {

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
    else return a + b;
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
      if (op == ReduceOp::kMean) store_real(static_cast<double>(acc) / static_cast<double>(n), out_address, out);
      else store_value(acc, out_address);
    } else {
      if (op == ReduceOp::kMean) acc = acc / static_cast<real_t<Acc>>(n);
      if constexpr (is_complex_v<Acc>) store_value(acc, out_address);
      else store_real(acc, out_address, out);
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
    else return multiply(a, b);
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
    if constexpr (std::is_integral_v<Acc> || is_complex_v<Acc>) store_value(acc, out_address);
    else store_real(acc, out_address, out);
  }
};

// count_nonzero, any, all, and the sum and product of bool, all from one count over the elements' bits.
template <class Bits>
struct Count : Reduction {
  using In = Bits;
  using Acc = std::int64_t;
  DLBRIDGE_ND_HD Acc identity() const noexcept { return 0; }
  DLBRIDGE_ND_HD static int nonzero(In x) noexcept {
    if constexpr (std::is_same_v<In, Bits128>) return (x.low | x.high) != 0;
    else return x != 0;
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
      case ReduceOp::kMean: store_real(static_cast<double>(acc) / static_cast<double>(n), out_address, out); break;
      default: *static_cast<std::int64_t*>(out_address) = acc; break;
    }
  }
};

// var and std by Welford's update, a batch at a time, merged by Chan's formula: one pass over memory, and no
// cancellation, wherever the data lies (sums of squares lose it far from 0). The mean is kept as its distance from one
// of the elements: rounded itself, it would be off by more than the spread of data that lies far from 0. 16-bit floats,
// whose means are float32, are too coarse for that. Complex: the mean of |x - mean|^2.
template <class T>
struct Moments : Reduction {
  using In = T;
  using Value = arith_t<T>;
  using Real = real_t<Value>;
  static constexpr bool kHasOrigin = !is_half_v<T>;
  struct AtZero {
    std::int64_t count;
    Value mean;
    Real m2;
  };
  struct AtElement {
    std::int64_t count;
    Value origin;  // an element
    Value mean;    // from there
    Real m2;
  };
  using Acc = std::conditional_t<kHasOrigin, AtElement, AtZero>;
  DLBRIDGE_ND_HD static Value origin_of(const Acc& acc) noexcept {
    if constexpr (kHasOrigin) return acc.origin;
    else return Value(0);
  }
  DLBRIDGE_ND_HD Acc identity() const noexcept { return Acc{}; }
  // `count` elements more, whose mean lies `delta` from that of the others, and their own m2.
  DLBRIDGE_ND_HD static void merge(Acc& acc, std::int64_t count, Value delta, Real m2) noexcept {
    const Real before = static_cast<Real>(acc.count);
    acc.count += count;
    const Real share = static_cast<Real>(count) / static_cast<Real>(acc.count);
    acc.mean += delta * share;
    acc.m2 += m2 + weighted_square(delta, before * share);
  }
  // The weight goes first: it is 0 before the first batch, and the square of a large number is infinite.
  DLBRIDGE_ND_HD static Real weighted_square(Value x, Real weight) noexcept {
    if constexpr (is_complex_v<Value>) return x.real() * weight * x.real() + x.imag() * weight * x.imag();
    else return x * weight * x;
  }
  DLBRIDGE_ND_HD void combine(Acc& acc, const Acc& other) const noexcept {
    if (other.count == 0) return;
    if (acc.count == 0) acc = other;
    else merge(acc, other.count, (origin_of(other) - origin_of(acc)) + (other.mean - acc.mean), other.m2);
  }
  template <int N>
  DLBRIDGE_ND_HD void add_values(Acc& acc, const In (&x)[N]) const noexcept {
    if constexpr (kHasOrigin)
      if (acc.count == 0) acc.origin = x[0];
    const Value origin = origin_of(acc);
    Value distances[N];
    for (int i = 0; i < N; ++i) distances[i] = cast<Value>(x[i]) - origin;
    const Value mean = tree(distances, Sum<Value>::merge) * (Real(1) / Real(N));
    Real squares[N];
    for (int i = 0; i < N; ++i) squares[i] = squared_magnitude((cast<Value>(x[i]) - origin) - mean);
    merge(acc, N, mean - acc.mean, tree(squares, Sum<Real>::merge));
  }
  DLBRIDGE_ND_HD void add(Acc& acc, In x, std::int64_t) const noexcept {
    const In one[1] = {x};
    add_values(acc, one);
  }
  template <int N, class Positions>
  DLBRIDGE_ND_HD void add_batch(Acc& acc, const In (&x)[N], Positions) const noexcept {
    add_values(acc, x);
  }
  DLBRIDGE_ND_HD void store(const Acc& acc, void* out_address) const noexcept {
    using std::sqrt;
    const double divisor = static_cast<double>(n) - correction;
    // Of an infinity or a NaN the variance is no number; differences with themselves are 0 otherwise.
    const Value origin = origin_of(acc), spread = (origin - origin) + (acc.mean - acc.mean);
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
  DLBRIDGE_ND_HD Acc value_of(In x) const noexcept {
    return op == ReduceOp::kNormMinusInf ? -magnitude(x) : magnitude(x);
  }
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

#undef DLBRIDGE_ND_NOINLINE
