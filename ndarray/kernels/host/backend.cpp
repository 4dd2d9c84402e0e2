// The host's kernels: the same functors as CUDA's, in plain loops.
#include "ndarray/kernels/functions.h"

namespace dlbridge::nd {

namespace host_kernels {
const char* error_text(int code) {
  switch (code) {
    case 0: return "success";
    case kErrorMemory: return "out of memory for a workspace";
    case kErrorUnsupported: return "there is no kernel for these dtypes";
    case kErrorIndex: return "an index is out of bounds";
    default: return "unknown error";
  }
}
}  // namespace host_kernels

const Backend kHostBackend{
    kKernelRelease,
    "host",
    host_kernels::elementwise,
    host_kernels::reduce,
    host_kernels::scan,
    host_kernels::sort,
    host_kernels::gather,
    host_kernels::scatter,
    host_kernels::nonzero,
    host_kernels::runs,
    host_kernels::search,
    host_kernels::triangle,
    host_kernels::join,
    host_kernels::dense,
    host_kernels::pad,
    host_kernels::range,
    host_kernels::random,
    host_kernels::multinomial,
    host_kernels::matmul,
    host_kernels::small_matrices,
    host_kernels::error_text,
};

}  // namespace dlbridge::nd
