// Padded arrays on CUDA: border and body are written in one go, 16 bytes a thread.
#include "ndarray/kernels/functors/pad.h"

#include <cstdint>

#include "ndarray/kernels/cuda/wide_writes.cuh"
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

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
__global__ void __launch_bounds__(kWriters) pad_rows(const __grid_constant__ PadParams<U> p) {
  constexpr int kElements = WideValue<T>::kElements;
  U first;
  int count;
  if (!find_elements<T>(p.size, first, count)) return;
  U row = first;
  U column = p.shape[0].split(row);
  const unsigned char* from = find_row(p, row);
  WideValue<T> values;
  const std::int64_t inside = static_cast<std::int64_t>(column) - p.before[0];
  const bool in_row = column + kElements <= p.shape[0].divisor;  // which may be cut within the body
  if (from != nullptr && in_row && inside >= 0 && inside + kElements <= p.extent[0] && count == kElements) {
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
  write_elements(p.out, first, count, values);
}

template <class T, class U>
int pad_as(const PadArgs& args) {
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
  return launch_writers<T, U>(pad_rows<T, U>, p, args.stream);
}

}  // namespace

int pad(const PadArgs& args) {
  return visit_writers(args.itemsize, args.size, [&]<class T, class U>() { return pad_as<T, U>(args); });
}

}  // namespace dlbridge::nd::cuda_kernels
