// Padded arrays, element by element: the host's front end copies slices instead, and this is what CUDA's does.
#include <cstring>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/pad.h"

namespace dlbridge::nd::host_kernels {

int pad(const PadArgs& args) {
  const auto bytes = static_cast<std::size_t>(args.itemsize);
  auto* out = static_cast<unsigned char*>(args.out);
  std::int64_t place[kLoopDims] = {};
  for (std::int64_t i = 0; i < args.size; ++i, out += bytes) {
    const auto* from = static_cast<const unsigned char*>(args.in);
    for (int d = 0; d < args.ndim && from != nullptr; ++d) {
      const std::int64_t source = padded_source(args.mode, place[d] - args.before[d], args.extent[d]);
      from = source < 0 ? nullptr : from + source * args.strides[d];
    }
    std::memcpy(out, from != nullptr ? from : args.value.bytes, bytes);
    for (int d = 0; d < args.ndim && ++place[d] == args.shape[d]; ++d) place[d] = 0;
  }
  return 0;
}

}  // namespace dlbridge::nd::host_kernels
