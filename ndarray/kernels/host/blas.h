// Matrix products by the BLAS of openblas.h. DLBRIDGE_BLAS=0 keeps to those of matmul.cpp.
#pragma once

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::host_kernels {

// Multiplications: below, a call and its checks cost more than they save. That with a vector has few checks, and that
// of one dot product none.
inline constexpr std::int64_t kBlasFrom = 4096;
inline constexpr std::int64_t kBlasVectorFrom = 512;
inline constexpr std::int64_t kBlasDotFrom = 128;

// Does the product and returns true; false where there is no BLAS, or none for its dtype, strides or size. Any thread.
bool multiply_by_blas(const MatmulArgs& args) noexcept;

}  // namespace dlbridge::nd::host_kernels
