// RMM: device_uvector and device_buffer, moved in with their stream and memory resource, copied out on a stream.
#pragma once

#include <cuda_runtime_api.h>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
// RMM frees on the stream that the buffer was made with, which the tensor's token names: the data is ready there, and
// later work there finds the memory alive. The resource is the program's and outlives its buffers, as RMM demands.
template <class Stream>
cudaStream_t native_stream(Stream stream) {  // rmm::cuda_stream_view of old releases, cuda::stream_ref of new ones
  if constexpr (requires { stream.value(); }) return stream.value();
  else return stream.get();
}
template <class T>
Status describe_rmm(T* data, std::size_t count, cudaStream_t stream, Tensor& out) {
  const std::int64_t extent = as(count);
  DLDevice device{kDLCUDA, 0};
  if (extent > 0) DLBRIDGE_TRY(cuda::device_of_pointer(data, device));
  out.ready = is_cuda(device) ? Ordering::on_stream(reinterpret_cast<StreamHandle>(stream)) : Ordering::ready();
  return describe_memory(out, data, device, 1, &extent, nullptr);
}

inline cudaStream_t rmm_stream(const Tensor& t, const options& o) {
  const StreamHandle handle = o.stream ? o.stream.handle() : cuda::current_stream(t.dl.device.device_id);
  return reinterpret_cast<cudaStream_t>(handle);  // 1 and 2 are cudart's own handles
}

constexpr caps rmm_caps(std::string_view name, DTypeSet set) {
  return {.name = name,
          .dtypes = set,
          .devices = kOnCuda,
          .min_rank = 1,
          .max_rank = 1,
          .strides = stride_rule::c_contig,
          .read_only = true,
          .source = source_kind::container,
          .result = result_kind::copy};
}
}  // namespace detail

template <class T>
struct converter<rmm::device_uvector<T>> {
  using X = rmm::device_uvector<T>;
  static constexpr caps capabilities = detail::rmm_caps("rmm::device_uvector", dtypes(dtype_of_v<T>));
  template <class Vector>
  static Status describe(Vector& x, Tensor& out) {
    return detail::describe_rmm(x.data(), x.size(), detail::native_stream(x.stream()), out);
  }
  // The copy is queued on the stream, with RMM's current memory resource.
  static X to(Tensor& t, const options& o) {
    const cudaStream_t stream = detail::rmm_stream(t, o);
    X out(static_cast<std::size_t>(t.size), stream);
    const auto bytes = static_cast<std::size_t>(t.nbytes());
    if (bytes == 0) return out;
    const cudaError_t error = cudaMemcpyAsync(out.data(), t.dl.data, bytes, cudaMemcpyDefault, stream);
    if (error != cudaSuccess)
      detail::throw_conversion(
          "to", capabilities,
          {ErrorCode::kCuda, std::string("cudaMemcpyAsync failed with ") + cudaGetErrorString(error)});
    return out;
  }
};

// Bytes.
template <>
struct converter<rmm::device_buffer> {
  static constexpr caps capabilities = detail::rmm_caps("rmm::device_buffer", dtypes(DType::kUInt8));
  static Status describe(rmm::device_buffer& x, Tensor& out) {
    return detail::describe_rmm(static_cast<std::uint8_t*>(x.data()), x.size(), detail::native_stream(x.stream()), out);
  }
  static rmm::device_buffer to(Tensor& t, const options& o) {
    return rmm::device_buffer(t.dl.data, static_cast<std::size_t>(t.nbytes()), detail::rmm_stream(t, o));
  }
};

}  // namespace dlbridge
