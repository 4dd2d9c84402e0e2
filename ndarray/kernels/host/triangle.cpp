// Triangles of matrices on the host: of each row a part is copied, and the rest set to 0.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <int kSize>
void copy_row(unsigned char* out, const unsigned char* in, std::int64_t stride, std::int64_t n) {
  if (stride == kSize) std::memcpy(out, in, static_cast<std::size_t>(n * kSize));
  else
    for (std::int64_t j = 0; j < n; ++j) std::memcpy(out + j * kSize, in + j * stride, kSize);
}

template <int kSize>
int walk(const TriangleArgs& args) {
  const std::int64_t columns = args.shape[0];
  auto* out = static_cast<unsigned char*>(args.out);
  const auto* in = static_cast<const unsigned char*>(args.in);
  std::int64_t counter[kLoopDims] = {};
  for (std::int64_t done = 0; done < args.size; done += columns) {
    const std::int64_t row = counter[1];
    const std::int64_t edge = std::clamp(row + args.diagonal + (args.lower ? 1 : 0), std::int64_t{0}, columns);
    const std::int64_t first = args.lower ? 0 : edge, end = args.lower ? edge : columns;
    std::memset(out, 0, static_cast<std::size_t>(first * kSize));
    copy_row<kSize>(out + first * kSize, in + first * args.strides[0], args.strides[0], end - first);
    std::memset(out + end * kSize, 0, static_cast<std::size_t>((columns - end) * kSize));
    out += columns * kSize;
    for (int d = 1; d < args.ndim; ++d) {
      in += args.strides[d];
      if (++counter[d] < args.shape[d]) break;
      in -= args.strides[d] * args.shape[d];
      counter[d] = 0;
    }
  }
  return 0;
}

}  // namespace

int triangle(const TriangleArgs& args) {
  switch (args.itemsize) {
    case 1: return walk<1>(args);
    case 2: return walk<2>(args);
    case 4: return walk<4>(args);
    case 8: return walk<8>(args);
    case 16: return walk<16>(args);
    default: return kErrorUnsupported;
  }
}

}  // namespace dlbridge::nd::host_kernels
