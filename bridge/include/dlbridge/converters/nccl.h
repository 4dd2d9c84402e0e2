// NCCL: a tensor as what its calls take: pointer, count, data type and stream. NCCL never owns, and calls return before
// the work is done: the tensor must live until the stream has passed the call. Needs NCCL 2.10 or newer.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "dlbridge/converter.h"

namespace dlbridge {

namespace detail {
struct NcclType {
  DType dtype;
  ncclDataType_t nccl;
  std::size_t parts = 1;  // elements of NCCL's in one of ours
};
// NCCL moves all of these as they are. It has no bool, which is a byte here: its maximum is "or", its minimum "and".
// Nor has it complex numbers, which are two floats here: sums and averages are right, products and extremes are not.
inline constexpr NcclType kNcclTypes[] = {
    {DType::kBool, ncclUint8},
    {DType::kInt8, ncclInt8},
    {DType::kUInt8, ncclUint8},
    {DType::kInt32, ncclInt32},
    {DType::kUInt32, ncclUint32},
    {DType::kInt64, ncclInt64},
    {DType::kUInt64, ncclUint64},
    {DType::kFloat16, ncclFloat16},
    {DType::kBFloat16, ncclBfloat16},
    {DType::kFloat32, ncclFloat32},
    {DType::kFloat64, ncclFloat64},
    {DType::kComplex32, ncclFloat16, 2},
    {DType::kComplex64, ncclFloat32, 2},
    {DType::kComplex128, ncclFloat64, 2},
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 3)
    {DType::kFloat8E4M3FN, ncclFloat8e4m3},
    {DType::kFloat8E5M2, ncclFloat8e5m2},
#endif
};
constexpr DTypeSet nccl_dtypes() {
  DTypeSet set = 0;
  for (const NcclType& row : kNcclTypes) set |= dtypes(row.dtype);
  return set;
}
}  // namespace detail

// One operand of a call. The elements are dense in C order, for all ranks must agree on theirs.
template <class Void>
struct BasicNcclBuffer {
  Void* data = nullptr;
  std::size_t count = 0;  // elements of `type`: twice the tensor's where they are complex
  ncclDataType_t type = ncclUint8;
  cudaStream_t stream = nullptr;  // the one of the options, else the thread's: the data is ready on it
};
using NcclBuffer = BasicNcclBuffer<void>;        // NCCL may write to it
using NcclSource = BasicNcclBuffer<const void>;  // NCCL reads it: read-only tensors, too

template <class Void>
struct converter<BasicNcclBuffer<Void>> {
  static constexpr caps capabilities{.name = std::is_const_v<Void> ? "NcclSource" : "NcclBuffer",
                                     .dtypes = detail::nccl_dtypes(),
                                     .devices = kOnCuda,
                                     .strides = stride_rule::c_contig,
                                     .read_only = std::is_const_v<Void>,
                                     .source = source_kind::none,
                                     .result = result_kind::view};

  static BasicNcclBuffer<Void> to(Tensor& t, const options& o) {
    BasicNcclBuffer<Void> out{.data = t.dl.data, .count = static_cast<std::size_t>(t.size)};
    for (const detail::NcclType& row : detail::kNcclTypes)
      if (row.dtype == t.dtype().id) out.type = row.nccl, out.count *= row.parts;
    const StreamHandle stream = o.stream ? o.stream.handle() : cuda::current_stream(t.dl.device.device_id);
    out.stream = reinterpret_cast<cudaStream_t>(stream);  // 1 and 2 are CUDA's own handles
    return out;
  }
};

}  // namespace dlbridge
