// Padded arrays on CUDA: border and body are written in one go, 16 bytes a thread.
#include "ndarray/kernels/functors/pad.h"

#include <cstdint>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;

template <class U>
struct PadParams {
  unsigned char* out;
  const unsigned char* in;
  U size;
  int ndim;
  PadMode mode;
  BasicDivider<U> shape[kLoopDims];
  std::int64_t before[kLoopDims];
  std::int64_t extent[kLoopDims];
  std::int64_t strides[kLoopDims];
  ScalarValue value;
};

// The row of `in` behind one of `out`; null: all of it is the constant.
template <class U>
__device__ const unsigned char* find_row(const PadParams<U>& p, U row) {
  const unsigned char* from = p.in;
  for (int d = 1; d < p.ndim; ++d) {
    const auto place = static_cast<std::int64_t>(d + 1 < p.ndim ? p.shape[d].split(row) : row);
    const std::int64_t source = padded_source(p.mode, place - p.before[d], p.extent[d]);
    if (source < 0) return nullptr;
    from += source * p.strides[d];
  }
  return from;
}

// Elements of the body: where they lie side by side at offsets that the compiler knows.
template <class T>
__device__ void copy_inside(const unsigned char* from, std::int64_t stride, T (&out)[16 / sizeof(T)]) {
  if (stride == sizeof(T)) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(16 / sizeof(T)); ++i) out[i] = reinterpret_cast<const T*>(from)[i];
    return;
  }
#pragma unroll
  for (int i = 0; i < static_cast<int>(16 / sizeof(T)); ++i) out[i] = *reinterpret_cast<const T*>(from + i * stride);
}

template <class T, class U>
__global__ void __launch_bounds__(kThreads) pad_rows(const __grid_constant__ PadParams<U> p) {
  constexpr int kElements = 16 / sizeof(T);
  const U first = (static_cast<U>(blockIdx.x) * kThreads + threadIdx.x) * kElements;
  if (first >= p.size) return;
  U row = first;
  U column = p.shape[0].split(row);
  const unsigned char* from = find_row(p, row);
  const int count = p.size - first < kElements ? static_cast<int>(p.size - first) : kElements;
  union {
    uint4 all;
    T elements[kElements];
  } values;
  const std::int64_t inside = static_cast<std::int64_t>(column) - p.before[0];
  if (from != nullptr && inside >= 0 && inside + kElements <= p.extent[0] && count == kElements) {
    copy_inside<T>(from + inside * p.strides[0], p.strides[0], values.elements);
  } else {
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      if (i >= count) break;
      const std::int64_t source =
          from == nullptr ? -1 : padded_source(p.mode, static_cast<std::int64_t>(column) - p.before[0], p.extent[0]);
      values.elements[i] = source < 0 ? *reinterpret_cast<const T*>(p.value.bytes)
                                      : *reinterpret_cast<const T*>(from + source * p.strides[0]);
      if (++column == p.shape[0].divisor && i + 1 < count) {
        column = 0;
        from = find_row(p, ++row);
      }
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
int launch(const PadArgs& args) {
  PadParams<U> p{};
  p.out = static_cast<unsigned char*>(args.out);
  p.in = static_cast<const unsigned char*>(args.in);
  p.size = static_cast<U>(args.size);
  p.ndim = args.ndim;
  p.mode = args.mode;
  p.value = args.value;
  for (int d = 0; d < args.ndim; ++d) {
    p.shape[d] = BasicDivider<U>::of(args.shape[d]);
    p.before[d] = args.before[d];
    p.extent[d] = args.extent[d];
    p.strides[d] = args.strides[d];
  }
  constexpr U a_block = static_cast<U>(kThreads) * (16 / sizeof(T));
  const auto blocks = static_cast<unsigned>((p.size + a_block - 1) / a_block);
  pad_rows<T, U><<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(p);
  return static_cast<int>(cudaGetLastError());
}

template <class T>
int launch_sized(const PadArgs& args) {
  constexpr std::int64_t limit =
      (std::int64_t{1} << 31) - kThreads * 16;  // the last block's threads count past the end
  return args.size < limit ? launch<T, std::uint32_t>(args) : launch<T, std::uint64_t>(args);
}

}  // namespace

int pad(const PadArgs& args) {
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
