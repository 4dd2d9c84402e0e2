// Parameters and operand types of the elementwise kernels.
#pragma once

#include <utility>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/functors/half_bits.h"
#include "ndarray/kernels/functors/loop.h"
#include "ndarray/kernels/functors/op_functors.h"
#include "ndarray/kernels/functors/op_groups.h"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kBlockThreads = 256;

enum class Access : std::uint8_t {
  kDirect,  // memory in the loop's own dtype
  kRepeat,  // vector kernel: one element for the whole innermost dim
  kCast,    // strided kernel: memory in another dtype
  kScalar,  // a parameter
};

// Dims and strides count steps of the loop: vectors in the vector kernel, elements in the strided one.
struct VectorParams {
  char* data[kMaxOperands];
  std::int64_t count;                              // of vectors
  std::int32_t tail;                               // elements past the last whole vector; only where ndim is 1
  std::int32_t ndim;                               // 1: 64-bit offsets
  std::int32_t strides[kMaxOperands][kTiledDims];  // bytes
  Divider dims[kTiledDims];
  Access access[kMaxOperands];
  ScalarValue scalars[kMaxOperands];
};

struct StridedParams {
  char* data[kMaxOperands];
  std::uint32_t size;
  std::int32_t ndim;                               // at least 1
  std::int32_t strides[kMaxOperands][kTiledDims];  // bytes; offsets fit 32 bits
  Divider dims[kTiledDims];
  Access access[kMaxOperands];
  DType dtype[kMaxOperands];  // where access is kCast
  bool result_signed;         // the loop computes in an unsigned type what the caller sees as signed
  ScalarValue scalars[kMaxOperands];
};

using VectorKernel = void (*)(const VectorParams);
using StridedKernel = void (*)(const StridedParams);

// What the host needs to know of an operation's kernels for one compute dtype; null where there is none.
struct Kernels {
  VectorKernel vector;
  StridedKernel strided;
  int vector_elements;  // of one vector
  int vectors_a_thread;
  int elements_a_thread;  // strided
};

// --- types of an operation's operands --------------------------------------------------------------------------------

template <class... In>
struct TypeList {};

// F: the functor. R and In: the storage types that it yields and takes. raw: 16-bit floats are passed as bits.
template <class F_, class R_, bool raw_, class... In>
struct Signature {
  using F = F_;
  using R = R_;
  using Inputs = TypeList<stored_t<In>...>;
  static constexpr bool raw = raw_;
  static constexpr int inputs = sizeof...(In);
  static constexpr int widest = std::max({sizeof(R), sizeof(In)...});
};

template <Op op, class C>
using Functor = std::conditional_t<is_of_half_bits<op, C>, HalfBitsFn<op, C>, OpFn<op, C>>;

template <Op op, class C, int inputs = info(op).operands>
struct OpSignature;
template <Op op, class C>
struct OpSignature<op, C, 1> {
  using type = Signature<Functor<op, C>, op_result_t<op, C>, is_of_half_bits<op, C>, C>;
};
template <Op op, class C>
struct OpSignature<op, C, 2> {
  using type = Signature<Functor<op, C>, op_result_t<op, C>, is_of_half_bits<op, C>, C, C>;
};
template <Op op, class C>
struct OpSignature<op, C, 3> {
  using type = Signature<OpFn<op, C>, op_result_t<op, C>, false, C, C, C>;
};
template <class C>
struct OpSignature<Op::kWhere, C, 3> {
  using type = Signature<OpFn<Op::kWhere, C>, C, true, bool, C, C>;
};

template <bool raw, class T>
DLBRIDGE_ND_HD inline auto argument(T value) noexcept {
  if constexpr (is_half_v<T> && !raw) return to_float(value);
  else if constexpr (std::is_same_v<T, BoolByte>) return value.byte != 0;
  else return value;
}
template <class R, class V>
DLBRIDGE_ND_HD inline R to_storage(V value) noexcept {
  if constexpr (is_half_v<R> && !std::is_same_v<R, V>) return cast<R>(value);
  else return static_cast<R>(value);
}

template <class T>
DLBRIDGE_ND_HD inline T scalar_of(const ScalarValue& value) noexcept {
  return *reinterpret_cast<const T*>(value.bytes);
}

}  // namespace dlbridge::nd::cuda_kernels
