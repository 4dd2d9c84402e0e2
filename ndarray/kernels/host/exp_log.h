// exp, log and pow a vector at a time, within one unit of the last place: libmvec's and those of C are less exact or
// slower.
#pragma once

#include "ndarray/kernels/host/vector_math.h"

namespace dlbridge::nd::host_kernels {

// The function for this machine; without one where it has no fused multiply-add of vectors, or for another operation.
template <class T>
VectorFunction<T> exp_log_function(Op op) noexcept;
extern template VectorFunction<float> exp_log_function<float>(Op op) noexcept;
extern template VectorFunction<double> exp_log_function<double>(Op op) noexcept;

}  // namespace dlbridge::nd::host_kernels
