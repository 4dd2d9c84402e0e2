// Rows that pieces of several arrays make, on the host.
#include <cstddef>
#include <cstring>

#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <int kSize>
int join_rows(const JoinArgs& args) {
  auto* out = static_cast<unsigned char*>(args.out);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for (int k = 0; k < args.parts; ++k) {
      const auto* const from = static_cast<const unsigned char*>(args.in[k]) +
                               row / args.inner_rows * args.outer_strides[k] +
                               row % args.inner_rows * args.row_strides[k];
      const std::int64_t length = args.lengths[k], stride = args.strides[k];
      if (stride == kSize) std::memcpy(out, from, static_cast<std::size_t>(length * kSize));
      for (std::int64_t i = 0; i < length && stride != kSize; ++i)
        std::memcpy(out + i * kSize, from + i * stride, kSize);
      out += length * kSize;
    }
  }
  return 0;
}

}  // namespace

int join(const JoinArgs& args) {
  switch (args.itemsize) {
    case 1: return join_rows<1>(args);
    case 2: return join_rows<2>(args);
    case 4: return join_rows<4>(args);
    case 8: return join_rows<8>(args);
    case 16: return join_rows<16>(args);
    default: return kErrorUnsupported;
  }
}

}  // namespace dlbridge::nd::host_kernels
