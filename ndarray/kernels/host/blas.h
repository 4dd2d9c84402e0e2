// Matrix products by a BLAS that is in the process already, as NumPy's or SciPy's is: their kernels know more machines
// and use all cores (OMP_NUM_THREADS). DLBRIDGE_BLAS=0 keeps to those of matmul.cpp.
#pragma once

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::host_kernels {

// Does the product and returns true; false where there is no BLAS, or none for its dtype, strides or size. Any thread;
// a library that is loaded later is found then.
bool multiply_by_blas(const MatmulArgs& args) noexcept;

}  // namespace dlbridge::nd::host_kernels
