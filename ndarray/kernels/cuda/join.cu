// Rows that pieces of several arrays make, on CUDA: what would be a strided copy of each array is written in one go,
// so that no sector of the result is written in parts.
#include <cstdint>

#include "ndarray/kernels/cuda/wide_writes.cuh"
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

template <class U>
struct JoinParams {
  unsigned char* out;
  U size;
  int parts;
  BasicDivider<U> row_length;
  BasicDivider<U> inner_rows;
  bool is_outer;  // there are rows of an outer dim
  U ends[kJoinedParts];
  U lengths[kJoinedParts];
  const unsigned char* in[kJoinedParts];
  std::int64_t outer_strides[kJoinedParts];
  std::int64_t row_strides[kJoinedParts];
  std::int64_t strides[kJoinedParts];
};

template <class T, class U>
__global__ void __launch_bounds__(kWriters) join_rows(const __grid_constant__ JoinParams<U> p) {
  U first;
  int count;
  if (!find_elements<T>(p.size, first, count)) return;
  U row = first;
  const U column = p.row_length.split(row);
  int part = 0;
  while (column >= p.ends[part]) ++part;
  U left = p.ends[part] - column;  // of the piece
  const auto row_of = [&p](int k, U r) {
    if (!p.is_outer) return p.in[k] + static_cast<std::int64_t>(r) * p.row_strides[k];
    const U inner = p.inner_rows.split(r);
    return p.in[k] + static_cast<std::int64_t>(r) * p.outer_strides[k] +
           static_cast<std::int64_t>(inner) * p.row_strides[k];
  };
  const unsigned char* from = row_of(part, row) + static_cast<std::int64_t>(p.lengths[part] - left) * p.strides[part];
  WideValue<T> values;
#pragma unroll
  for (int i = 0; i < WideValue<T>::kElements; ++i) {
    if (i >= count) break;
    values.elements[i] = *reinterpret_cast<const T*>(from);
    from += p.strides[part];
    if (--left == 0 && i + 1 < count) {
      if (++part == p.parts) part = 0, ++row;
      left = p.lengths[part];
      from = row_of(part, row);
    }
  }
  write_elements(p.out, first, count, values);
}

template <class T, class U>
int join_as(const JoinArgs& args, std::int64_t row_length) {
  JoinParams<U> p{};
  p.out = static_cast<unsigned char*>(args.out);
  p.size = static_cast<U>(args.rows * row_length);
  p.parts = args.parts;
  p.row_length = BasicDivider<U>::of(row_length);
  p.inner_rows = BasicDivider<U>::of(args.inner_rows);
  p.is_outer = args.inner_rows < args.rows;
  U end = 0;
  for (int k = 0; k < args.parts; ++k) {
    p.lengths[k] = static_cast<U>(args.lengths[k]);
    p.ends[k] = end += p.lengths[k];
    p.in[k] = static_cast<const unsigned char*>(args.in[k]);
    p.outer_strides[k] = args.outer_strides[k];
    p.row_strides[k] = args.row_strides[k];
    p.strides[k] = args.strides[k];
  }
  return launch_writers<T, U>(join_rows<T, U>, p, args.stream);
}

}  // namespace

int join(const JoinArgs& args) {
  std::int64_t row_length = 0;
  for (int k = 0; k < args.parts; ++k) row_length += args.lengths[k];
  return visit_writers(args.itemsize, args.rows * row_length,
                       [&]<class T, class U>() { return join_as<T, U>(args, row_length); });
}

}  // namespace dlbridge::nd::cuda_kernels
