// Cumulative products.
#include "ndarray/kernels/cuda/scan_kernels.cuh"

namespace dlbridge::nd::cuda_kernels {

int scan_prod(const ScanArgs& args) { return scan_by<ProdScan>(args); }

}  // namespace dlbridge::nd::cuda_kernels
