// The functions behind the two instances of the kernel table; each is defined in the file of its family, in host/ and
// in cuda/.
#pragma once

#include "ndarray/kernels/api.h"

#define DLBRIDGE_ND_DECLARE_KERNELS             \
  int elementwise(const ElementwiseArgs& args); \
  int reduce(const ReduceArgs& args);           \
  int scan(const ScanArgs& args);               \
  int sort(const SortArgs& args);               \
  int gather(const IndexArgs& args);            \
  int scatter(const IndexArgs& args);           \
  int nonzero(const NonzeroArgs& args);         \
  int runs(const RunsArgs& args);               \
  int search(const SearchArgs& args);           \
  int triangle(const TriangleArgs& args);       \
  int join(const JoinArgs& args);               \
  int dense(const DenseArgs& args);             \
  int pad(const PadArgs& args);                 \
  int range(const RangeArgs& args);             \
  int random(const RandomArgs& args);           \
  int multinomial(const MultinomialArgs& args); \
  int matmul(const MatmulArgs& args);           \
  int small_matrices(const MatrixArgs& args);   \
  const char* error_text(int code);

namespace dlbridge::nd::host_kernels {
DLBRIDGE_ND_DECLARE_KERNELS
}
namespace dlbridge::nd::cuda_kernels {
DLBRIDGE_ND_DECLARE_KERNELS
}
#undef DLBRIDGE_ND_DECLARE_KERNELS
