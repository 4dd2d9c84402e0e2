// visit_dtype() for device code: a run-time dtype's type, by a jump that all threads take alike.
#pragma once

#include "ndarray/kernels/types.h"

namespace dlbridge::nd::cuda_kernels {

template <class F>
__device__ inline void on_dtype(DType dtype, F&& f) {
  switch (dtype) {
#define DLBRIDGE_ND_CASE(id, T) \
  case DType::id: return f.template operator()<T>();
    DLBRIDGE_ND_FOR_EACH_DTYPE(DLBRIDGE_ND_CASE)
#undef DLBRIDGE_ND_CASE
    default: return;
  }
}

}  // namespace dlbridge::nd::cuda_kernels
