// Thrust: host_vector and device_vector, moved in. Thrust cannot adopt memory: the way out is a copy of a host_vector,
// or a kernel over the tensor's own pointer.
#pragma once

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include <cstdint>

#include "dlbridge/converters/run.h"

namespace dlbridge {

template <class T, class Allocator>
struct converter<thrust::host_vector<T, Allocator>> : detail::run_converter<thrust::host_vector<T, Allocator>> {
  static constexpr caps capabilities = detail::run_caps<T>("thrust::host_vector");
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
    auto* data = extent > 0 ? thrust::raw_pointer_cast(x.data()) : nullptr;
    DLDevice device = kCpuDevice;
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
    device = {kDLCUDA, 0};
    if (extent > 0) DLBRIDGE_TRY(cuda::device_of_pointer(data, device));
#endif
    return describe_memory(out, data, device, 1, &extent, nullptr);
  }
};

}  // namespace dlbridge
