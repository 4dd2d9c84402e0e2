// The operations of nd for fused kernels: the functors of the compiled kernels, and what they do around them.
#ifndef DLBRIDGE_FUNCTORS_CUH
#define DLBRIDGE_FUNCTORS_CUH

#include "ndarray/kernels/functors/op_functors.h"

namespace dlb {

using dlbridge::nd::Op;

template <class T>
constexpr bool is_float = false;
template <>
constexpr bool is_float<const float> = true;

template <class To, class From>
DLBRIDGE_FN To cast(const From& value) {
  return dlbridge::nd::cast<To>(value);
}

template <class C, class From>
DLBRIDGE_FN auto operand(const From& value) {
  const C stored = cast<C>(value);
  return dlbridge::nd::load(&stored);
}

// The operation in the type C, and its result, as C stores it, as R.
template <Op op, class C, class R, class... In>
DLBRIDGE_FN R call(const In&... in) {
  const auto value = dlbridge::nd::OpFn<op, C>{}(operand<C>(in)...);
  if constexpr (dlbridge::nd::is_half_v<C> && is_float<decltype(value)>) return cast<R>(cast<C>(value));
  else return cast<R>(value);
}

// where() keeps bits: 16-bit floats do not go by way of float.
template <class C, class R, class A, class B>
DLBRIDGE_FN R where(bool condition, const A& a, const B& b) {
  return cast<R>(dlbridge::nd::OpFn<Op::kWhere, C>{}(condition, cast<C>(a), cast<C>(b)));
}

}  // namespace dlb

#endif  // DLBRIDGE_FUNCTORS_CUH
