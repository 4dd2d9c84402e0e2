// Rows that pieces of several arrays make, on CUDA: what would be a strided copy of each array is written in one go,
// so that no sector of the result is written in parts.
#include <cstdint>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;

template <class U>
struct JoinParams {
  unsigned char* out;
  U size;
  int parts;
  BasicDivider<U> row_length;
  U ends[kJoinedParts];
  U lengths[kJoinedParts];
  const unsigned char* in[kJoinedParts];
  std::int64_t row_strides[kJoinedParts];
  std::int64_t strides[kJoinedParts];
};

// A thread writes 16 bytes.
template <class T, class U>
__global__ void __launch_bounds__(kThreads) join_rows(const __grid_constant__ JoinParams<U> p) {
  constexpr int kElements = 16 / sizeof(T);
  const U first = (static_cast<U>(blockIdx.x) * kThreads + threadIdx.x) * kElements;
  if (first >= p.size) return;
  U row = first;
  const U column = p.row_length.split(row);
  int part = 0;
  while (column >= p.ends[part]) ++part;
  U left = p.ends[part] - column;  // of the piece
  const auto row_of = [&p](int k, U r) { return p.in[k] + static_cast<std::int64_t>(r) * p.row_strides[k]; };
  const unsigned char* from = row_of(part, row) + static_cast<std::int64_t>(p.lengths[part] - left) * p.strides[part];
  const int count = p.size - first < kElements ? static_cast<int>(p.size - first) : kElements;
  union {
    uint4 all;
    T elements[kElements];
  } values;
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    if (i >= count) break;
    values.elements[i] = *reinterpret_cast<const T*>(from);
    from += p.strides[part];
    if (--left == 0 && i + 1 < count) {
      if (++part == p.parts) part = 0, ++row;
      left = p.lengths[part];
      from = row_of(part, row);
    }
  }
  T* const to = reinterpret_cast<T*>(p.out) + first;
  if (count == kElements) {
    *reinterpret_cast<uint4*>(to) = values.all;
    return;
  }
#pragma unroll
  for (int i = 0; i < kElements; ++i)
    if (i < count) to[i] = values.elements[i];
}

template <class T, class U>
int launch(const JoinArgs& args, std::int64_t row_length) {
  JoinParams<U> p{};
  p.out = static_cast<unsigned char*>(args.out);
  p.size = static_cast<U>(args.rows * row_length);
  p.parts = args.parts;
  p.row_length = BasicDivider<U>::of(row_length);
  U end = 0;
  for (int k = 0; k < args.parts; ++k) {
    p.lengths[k] = static_cast<U>(args.lengths[k]);
    p.ends[k] = end += p.lengths[k];
    p.in[k] = static_cast<const unsigned char*>(args.in[k]);
    p.row_strides[k] = args.row_strides[k];
    p.strides[k] = args.strides[k];
  }
  constexpr U a_block = static_cast<U>(kThreads) * (16 / sizeof(T));
  const auto blocks = static_cast<unsigned>((p.size + a_block - 1) / a_block);
  join_rows<T, U><<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(p);
  return static_cast<int>(cudaGetLastError());
}

template <class T>
int launch_sized(const JoinArgs& args) {
  std::int64_t row_length = 0;
  for (int k = 0; k < args.parts; ++k) row_length += args.lengths[k];
  constexpr std::int64_t limit =
      (std::int64_t{1} << 31) - kThreads * 16;  // the last block's threads count past the end
  return args.rows * row_length < limit ? launch<T, std::uint32_t>(args, row_length)
                                        : launch<T, std::uint64_t>(args, row_length);
}

}  // namespace

int join(const JoinArgs& args) {
  switch (args.itemsize) {
    case 1: return launch_sized<std::uint8_t>(args);
    case 2: return launch_sized<std::uint16_t>(args);
    case 4: return launch_sized<std::uint32_t>(args);
    case 8: return launch_sized<uint2>(args);
    case 16: return launch_sized<uint4>(args);
    default: return kErrorUnsupported;
  }
}

}  // namespace dlbridge::nd::cuda_kernels
