// visit_dtype() for device code: a run-time dtype's type, by a jump that all threads take alike.
#pragma once

#include "ndarray/kernels/types.h"

namespace dlbridge::nd::cuda_kernels {

template <class F>
__device__ inline void on_dtype(DType dtype, F&& f) {
  switch (dtype) {
#define DLBRIDGE_ND_CASE(id) \
  case DType::id: return f.template operator()<type_of_t<DType::id>>();
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
    DLBRIDGE_ND_CASE(kComplex128)
#undef DLBRIDGE_ND_CASE
    default: return;
  }
}

}  // namespace dlbridge::nd::cuda_kernels
