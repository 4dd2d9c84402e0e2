// Thrust: host_vector and device_vector, moved in. Thrust cannot adopt memory: the way out is a copy of a host_vector,
// or a kernel over the tensor's own pointer.
#pragma once

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include <cstdint>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

template <class T, class Allocator>
struct converter<thrust::host_vector<T, Allocator>> {
  using X = thrust::host_vector<T, Allocator>;
  static constexpr caps capabilities{.name = "thrust::host_vector",
                                     .dtypes = dtypes(dtype_of_v<T>),
                                     .devices = kOnHost,
                                     .min_rank = 1,
                                     .max_rank = 1,
                                     .strides = stride_rule::any,
                                     .read_only = true,
                                     .source = source_kind::container,
                                     .result = result_kind::copy};
  template <class Vector>
  static Status describe(Vector& x, Tensor& out) {
    const std::int64_t extent = detail::as(x.size());
    return describe_memory(out, x.data(), kCpuDevice, 1, &extent, nullptr);
  }
  static X to(TensorView<const T, 1> v, const options&) {
    X out(static_cast<std::size_t>(v.size()));
    for (std::int64_t i = 0; i < v.extent(0); ++i) out[static_cast<std::size_t>(i)] = v(i);
    return out;
  }
};

// With Thrust's CUDA back end the memory is on the device that the driver says; with its host back ends on the CPU.
// Thrust's own algorithms run on the legacy default stream unless told otherwise: that is the tensor's token.
template <class T, class Allocator>
struct converter<thrust::device_vector<T, Allocator>> {
  using X = thrust::device_vector<T, Allocator>;
  static constexpr caps capabilities{.name = "thrust::device_vector",
                                     .dtypes = dtypes(dtype_of_v<T>),
                                     .devices = kOnHost | kOnCuda,
                                     .min_rank = 1,
                                     .max_rank = 1,
                                     .read_only = true,
                                     .source = source_kind::container,
                                     .result = result_kind::none};
  template <class Vector>
  static Status describe(Vector& x, Tensor& out) {
    const std::int64_t extent = detail::as(x.size());
    auto* data = thrust::raw_pointer_cast(x.data());
    DLDevice device = kCpuDevice;
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
    device = {kDLCUDA, 0};
    if (extent > 0) DLBRIDGE_TRY(cuda::device_of_pointer(data, device));
#endif
    return describe_memory(out, data, device, 1, &extent, nullptr);
  }
};

}  // namespace dlbridge
