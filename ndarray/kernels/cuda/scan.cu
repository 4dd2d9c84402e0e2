// Cumulative sums.
#include "ndarray/kernels/cuda/scan_kernels.cuh"

namespace dlbridge::nd::cuda_kernels {

int scan_sum(const ScanArgs& args) { return scan_by<SumScan>(args); }

int scan(const ScanArgs& args) {
  if (args.outer == 0 || args.n == 0 || args.inner == 0) return 0;
  return args.op == ScanOp::kSum ? scan_sum(args) : scan_prod(args);
}

}  // namespace dlbridge::nd::cuda_kernels
