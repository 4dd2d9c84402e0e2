// Launches for the kernel families with plans of their own: what they ask of the device, once a device.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

#include "dlbridge/stream.h"

namespace dlbridge::nd::cuda_kernels {

inline cudaStream_t stream_of(StreamHandle handle) noexcept { return reinterpret_cast<cudaStream_t>(handle); }

// Multiprocessors of the current device; 0 where it cannot be asked, which the launch will report.
inline int multiprocessors() noexcept {
  constexpr int kDevices = 64;
  static std::atomic<int> known[kDevices];
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= kDevices) return 0;
  int count = known[device].load(std::memory_order_relaxed);
  if (count == 0 && cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess)
    known[device].store(count, std::memory_order_relaxed);
  return count;
}

template <class... Parameters, class... Arguments>
int launch(void (*kernel)(Parameters...), dim3 grid, unsigned threads, std::size_t shared_bytes, StreamHandle stream,
           const Arguments&... arguments) noexcept {
  kernel<<<grid, threads, shared_bytes, stream_of(stream)>>>(arguments...);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace dlbridge::nd::cuda_kernels
