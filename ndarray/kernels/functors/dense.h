// What DenseOp computes of an element of each input.
#pragma once

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/functors/arithmetic.h"
#include "ndarray/kernels/functors/float_form.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

struct Nothing {};  // there is no second result

// inputs: how many, of T; First_ and Second_: what it writes.
template <class T, int inputs, class First_ = T, class Second_ = Nothing>
struct DenseFunction {
  using In = T;
  using First = First_;
  using Second = Second_;
  static constexpr int kInputs = inputs;
};

template <class T>
struct SplitExponents : DenseFunction<T, 1, T, std::int32_t> {
  explicit SplitExponents(const DenseArgs&) noexcept {}
  DLBRIDGE_ND_HD void operator()(T x, T, T& mantissa, std::int32_t& exponent) const noexcept {
    const FloatParts<T> parts = split_exponent(x);
    mantissa = parts.mantissa;
    exponent = parts.exponent;
  }
};

template <class T>
struct SplitWholes : DenseFunction<T, 1, T, T> {
  explicit SplitWholes(const DenseArgs&) noexcept {}
  DLBRIDGE_ND_HD void operator()(T x, T, T& fraction, T& whole) const noexcept {
    using A = arith_t<T>;
    const A value = load(&x), before = std::trunc(value);
    const A rest = fn::is_inf(value) ? A(0) : value - before;
    fraction = cast<T>(std::copysign(rest, value));
    whole = cast<T>(before);
  }
};

template <class T>
struct Divide : DenseFunction<T, 2, T, T> {
  explicit Divide(const DenseArgs&) noexcept {}
  DLBRIDGE_ND_HD void operator()(T x, T y, T& quotient, T& rest) const noexcept {
    const arith_t<T> a = load(&x), b = load(&y);
    quotient = cast<T>(fn::floor_divide(a, b));
    rest = cast<T>(fn::remainder(a, b));
  }
};

// Each step is rounded to the dtype, as where each is a function of its own.
template <class T>
struct IsClose : DenseFunction<T, 2, bool> {
  using Real = real_t<T>;
  explicit IsClose(const DenseArgs& args) noexcept
      : absolute(rounded(cast<Real>(args.numbers[0]))),
        relative(rounded(cast<Real>(args.numbers[1]))),
        equal_nan(args.flag) {}
  DLBRIDGE_ND_HD void operator()(T x, T y, bool& close, Nothing&) const noexcept {
    const arith_t<T> a = load(&x), b = load(&y);
    const auto is_near = [&] {
      const auto bound = fn::add(absolute, round(fn::multiply(relative, fn::absolute(b))));
      return round(fn::absolute(fn::subtract(a, b))) <= round(bound);
    };
    const bool nans = int{equal_nan} & int{fn::is_nan(a)} & int{fn::is_nan(b)};
    if constexpr (is_complex_v<T>) close = fn::equal(a, b) || nans || (fn::is_finite(b) && is_near());
    else
      close = (int{is_near()} & int{fn::is_finite(b)}) | int{fn::equal(a, b)} | int{nans};  // of no choices, a vector
  }

 private:
  DLBRIDGE_ND_HD static arith_t<Real> rounded(Real x) noexcept { return load(&x); }
  DLBRIDGE_ND_HD static arith_t<Real> round(arith_t<Real> x) noexcept { return rounded(cast<Real>(x)); }

  arith_t<Real> absolute, relative;
  bool equal_nan;
};

// A number of a call, as T computes with it.
template <class T>
arith_t<T> number_as(double number) noexcept {
  const T stored = cast<T>(number);
  return load(&stored);
}

template <class T>
struct ReplaceSpecials : DenseFunction<T, 1> {
  using A = arith_t<T>;
  explicit ReplaceSpecials(const DenseArgs& args) noexcept
      : nan(number_as<T>(args.numbers[0])), high(number_as<T>(args.numbers[1])), low(number_as<T>(args.numbers[2])) {}
  DLBRIDGE_ND_HD void operator()(T x, T, T& out, Nothing&) const noexcept {
    const A value = load(&x), bounded = !fn::is_inf(value) ? value : value > A(0) ? high : low;
    out = cast<T>(fn::is_nan(value) ? nan : bounded);
  }

 private:
  A nan, high, low;
};

template <class T>
struct ReplaceNan : DenseFunction<T, 1> {
  explicit ReplaceNan(const DenseArgs& args) noexcept : number(cast<T>(args.numbers[0])) {}
  DLBRIDGE_ND_HD void operator()(T x, T, T& out, Nothing&) const noexcept { out = fn::is_nan(load(&x)) ? number : x; }

 private:
  T number;
};

// Each step is rounded to the dtype, as above.
template <class T, bool divides_first>
struct RoundAt : DenseFunction<T, 1> {
  using A = arith_t<T>;
  explicit RoundAt(const DenseArgs& args) noexcept : scale(number_as<T>(args.numbers[0])) {}
  DLBRIDGE_ND_HD void operator()(T x, T, T& out, Nothing&) const noexcept {
    const A value = load(&x);
    const T scaled = cast<T>(divides_first ? value / scale : value * scale);
    const A whole = std::rint(load(&scaled));
    out = cast<T>(divides_first ? whole * scale : whole / scale);
  }

 private:
  A scale;
};

template <class T>
struct ScaleByPowers : DenseFunction<T, 2> {
  explicit ScaleByPowers(const DenseArgs&) noexcept {}
  DLBRIDGE_ND_HD void operator()(T x, T y, T& out, Nothing&) const noexcept {
    using A = arith_t<T>;
    constexpr int kFarthest = 5000;  // from zero to infinity, and back
    const A power = load(&y);
    out = cast<T>(std::scalbn(load(&x), power >= A(kFarthest)   ? kFarthest
                                        : power > A(-kFarthest) ? static_cast<int>(power)
                                                                : -kFarthest));
  }
};

// Calls f with the functor of a call; kErrorUnsupported where there is none.
template <class F>
int with_dense_functor(const DenseArgs& args, F f) {
  constexpr int kNone = kErrorUnsupported;
  switch (args.op) {
    case DenseOp::kSplitExponents:
      return visit_dtype<kFloatSet>(args.dtype, [&]<class T>() { return f(SplitExponents<T>(args)); }, kNone);
    case DenseOp::kSplitWholes:
      return visit_dtype<kFloatSet>(args.dtype, [&]<class T>() { return f(SplitWholes<T>(args)); }, kNone);
    case DenseOp::kDivide:
      return visit_dtype<kRealSet>(args.dtype, [&]<class T>() { return f(Divide<T>(args)); }, kNone);
    case DenseOp::kIsClose:
      return visit_dtype<kInexactSet>(args.dtype, [&]<class T>() { return f(IsClose<T>(args)); }, kNone);
    case DenseOp::kReplaceSpecials:
      return visit_dtype<kFloatSet>(args.dtype, [&]<class T>() { return f(ReplaceSpecials<T>(args)); }, kNone);
    case DenseOp::kReplaceNan:
      return visit_dtype<kInexactSet>(args.dtype, [&]<class T>() { return f(ReplaceNan<T>(args)); }, kNone);
    case DenseOp::kRoundAt:
      return visit_dtype<kFloatSet>(
          args.dtype, [&]<class T>() { return args.flag ? f(RoundAt<T, true>(args)) : f(RoundAt<T, false>(args)); },
          kNone);
    case DenseOp::kScaleByPowers:
      return visit_dtype<kFloatSet & ~bit(DType::kBFloat16)>(
          args.dtype, [&]<class T>() { return f(ScaleByPowers<T>(args)); }, kNone);
    default: return kNone;
  }
}

// --- bits ------------------------------------------------------------------------------------------------------------

inline constexpr std::uint64_t kEachByte = 0x0101010101010101;  // a number of 8 bits, in each byte of a word

// Eight elements, the first in the lowest byte of a word: a bit for each that is not 0. Of bytes of 0 and 1 the product
// carries each to its place in the highest byte, and no two to one place.
DLBRIDGE_ND_HD inline std::uint8_t pack_word(std::uint64_t word, bool little) noexcept {
  constexpr std::uint64_t kLow = 0x7f * kEachByte;
  const std::uint64_t ones = (((word & kLow) + kLow) | word) >> 7 & kEachByte;
  return static_cast<std::uint8_t>(ones * (little ? 0x0102040810204080 : 0x8040201008040201) >> 56);
}

// The reverse: bytes of 0 and 1.
DLBRIDGE_ND_HD inline std::uint64_t unpack_byte(std::uint8_t byte, bool little) noexcept {
  const std::uint64_t bits = byte * kEachByte & (little ? 0x8040201008040201 : 0x0102040810204080);
  return (bits + 0x7f * kEachByte) >> 7 & kEachByte;
}

}  // namespace dlbridge::nd
