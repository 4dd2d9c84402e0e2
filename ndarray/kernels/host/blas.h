// Matrix products by the BLAS of openblas.h. DLBRIDGE_BLAS=0 keeps to those of matmul.cpp.
#pragma once

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::host_kernels {

// Does the product and returns true; false where there is no BLAS, or none for its dtype, strides or size. Any thread.
bool multiply_by_blas(const MatmulArgs& args) noexcept;

}  // namespace dlbridge::nd::host_kernels
