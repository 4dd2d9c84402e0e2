// cuBLAS, opened when the first matrix product asks for it: no build or import depends on it.
#pragma once

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::cuda_kernels {

enum class CublasResult : std::uint8_t {
  kDone,
  kFailed,   // `code` says how
  kRefused,  // no cuBLAS here, or nothing that it can express: a kernel of ours takes over
};

// Queues the product of args on its stream. The dtypes are the inexact ones.
CublasResult cublas_matmul(const MatmulArgs& args, int& code);

}  // namespace dlbridge::nd::cuda_kernels

// Folders to look for the CUDA libraries in before all others; a null pointer ends the list. To be called before the
// first product; returns 0.
extern "C" int dlbridge_nd_cuda_set_library_paths(const char* const* folders) noexcept;
