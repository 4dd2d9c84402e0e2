// The way from a run-time DType to the element type of the kernels.
#pragma once

#include "dlbridge/dtype.h"
#include "ndarray/kernels/numbers.h"
#include "ndarray/kernels/ops.h"

namespace dlbridge::nd {

// X(DType, type) for every dtype that has arithmetic: what maps one to the other derives from this list.
#define DLBRIDGE_ND_FOR_EACH_DTYPE(X) \
  X(kBool, bool)                      \
  X(kInt8, std::int8_t)               \
  X(kInt16, std::int16_t)             \
  X(kInt32, std::int32_t)             \
  X(kInt64, std::int64_t)             \
  X(kUInt8, std::uint8_t)             \
  X(kUInt16, std::uint16_t)           \
  X(kUInt32, std::uint32_t)           \
  X(kUInt64, std::uint64_t)           \
  X(kFloat16, float16)                \
  X(kBFloat16, bfloat16)              \
  X(kFloat32, float)                  \
  X(kFloat64, double)                 \
  X(kComplex64, complex<float>)       \
  X(kComplex128, complex<double>)

template <DType>
struct type_of;
template <class T>
struct dtype_of_native;
#define DLBRIDGE_ND_TYPE(id, T)               \
  template <>                                 \
  struct type_of<DType::id> {                 \
    using type = T;                           \
  };                                          \
  template <>                                 \
  struct dtype_of_native<T> {                 \
    static constexpr DType value = DType::id; \
  };
DLBRIDGE_ND_FOR_EACH_DTYPE(DLBRIDGE_ND_TYPE)
#undef DLBRIDGE_ND_TYPE
#define DLBRIDGE_ND_BIT(id, T) | bit(DType::id)
static_assert((DTypeSet{0} DLBRIDGE_ND_FOR_EACH_DTYPE(DLBRIDGE_ND_BIT)) == kAllSet);
#undef DLBRIDGE_ND_BIT
template <DType D>
using type_of_t = typename type_of<D>::type;

// Calls f.template operator()<T>() with the type of a run-time dtype of `Set`; `otherwise` for any other.
template <DTypeSet Set, class F, class R>
R visit_dtype(DType dtype, F&& f, R otherwise) {
  switch (dtype) {
#define DLBRIDGE_ND_CASE(id, T)                                                \
  case DType::id:                                                              \
    if constexpr (contains(Set, DType::id)) return f.template operator()<T>(); \
    break;
    DLBRIDGE_ND_FOR_EACH_DTYPE(DLBRIDGE_ND_CASE)
#undef DLBRIDGE_ND_CASE
    default: break;
  }
  return otherwise;
}

}  // namespace dlbridge::nd
