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
void copy_rows(const TriangleArgs& args, unsigned char* out, const unsigned char* in, std::int64_t rows) {
  const std::int64_t columns = args.shape[0];
  if (rows > 0 && args.strides[0] == kSize && args.strides[1] == columns * kSize)
    return copy_row<kSize>(out, in, kSize, rows * columns);
  for (std::int64_t row = 0; row < rows; ++row)
    copy_row<kSize>(out + row * columns * kSize, in + row * args.strides[1], args.strides[0], columns);
}

// The edge goes from column to column; above it rows are alike, and below.
template <int kSize>
void cut(const TriangleArgs& args, std::int64_t rows, unsigned char* out, const unsigned char* in) {
  const std::int64_t columns = args.shape[0], bytes = columns * kSize, edge = args.diagonal + (args.lower ? 1 : 0);
  const std::int64_t above = std::clamp(1 - edge, std::int64_t{0}, rows),
                     below = std::clamp(columns - edge, above, rows);
  const auto clear = [](unsigned char* p, std::int64_t n) { std::memset(p, 0, static_cast<std::size_t>(n)); };
  if (args.lower) clear(out, above * bytes);
  else copy_rows<kSize>(args, out, in, above);
  for (std::int64_t row = above; row < below; ++row) {
    unsigned char* const at = out + row * bytes;
    const std::int64_t first = args.lower ? 0 : row + edge, end = args.lower ? row + edge : columns;
    clear(at, first * kSize);
    copy_row<kSize>(at + first * kSize, in + row * args.strides[1] + first * args.strides[0], args.strides[0],
                    end - first);
    clear(at + end * kSize, (columns - end) * kSize);
  }
  if (args.lower) copy_rows<kSize>(args, out + below * bytes, in + below * args.strides[1], rows - below);
  else clear(out + below * bytes, (rows - below) * bytes);
}

template <int kSize>
int walk(const TriangleArgs& args) {
  const std::int64_t rows = args.shape[1], elements = args.shape[0] * rows;
  auto* out = static_cast<unsigned char*>(args.out);
  const auto* in = static_cast<const unsigned char*>(args.in);
  std::int64_t counter[kLoopDims] = {};
  for (std::int64_t done = 0; done < args.size; done += elements, out += elements * kSize) {
    cut<kSize>(args, rows, out, in);
    for (int d = 2; d < args.ndim; ++d) {
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
