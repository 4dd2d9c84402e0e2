// The table of the CUDA kernel library, and its one exported symbol.
#include "ndarray/kernels/functions.h"

namespace dlbridge::nd {

namespace cuda_kernels {
const char* error_text(int code) {
  switch (code) {
    case kErrorMemory: return "out of memory for a workspace";
    case kErrorUnsupported: return "there is no kernel for these dtypes";
    default: return code > 0 ? cudaGetErrorString(static_cast<cudaError_t>(code)) : "success";
  }
}
}  // namespace cuda_kernels

namespace {
constexpr Backend kCudaBackend{
    kKernelRelease,
    "cuda",
    cuda_kernels::elementwise,
    cuda_kernels::reduce,
    cuda_kernels::scan,
    cuda_kernels::sort,
    cuda_kernels::gather,
    cuda_kernels::scatter,
    cuda_kernels::nonzero,
    cuda_kernels::runs,
    cuda_kernels::search,
    cuda_kernels::triangle,
    cuda_kernels::join,
    cuda_kernels::dense,
    cuda_kernels::pad,
    cuda_kernels::range,
    cuda_kernels::random,
    cuda_kernels::multinomial,
    cuda_kernels::matmul,
    cuda_kernels::small_matrices,
    cuda_kernels::error_text,
};
}  // namespace

extern "C" __attribute__((visibility("default"))) const Backend* dlbridge_nd_cuda_backend() noexcept {
  return &kCudaBackend;
}

}  // namespace dlbridge::nd
