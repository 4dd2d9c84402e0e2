// Copies between devices as Python code sees them: other threads run meanwhile.
#pragma once

#include <string>
#include <utility>

#include "dlbridge/device_copy.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

// Copies are made in ordinary host or device memory: a copy of pinned memory is not pinned.
inline DLDevice plain_memory_of(DLDevice device) noexcept {
  if (is_host(device)) return {kDLCPU, 0};
  return is_cuda(device) ? DLDevice{kDLCUDA, device.device_id} : device;
}

// For a device that the user asked for by name.
inline Status check_copy_target(DLDevice device) {
  if (same_device(plain_memory_of(device), device)) return {};
  return refused("device (" + std::to_string(device.device_type) + ", " + std::to_string(device.device_id) +
                 ") is asked for, and dlbridge copies to ordinary memory only: (1, 0) is the host's, (2, id) a GPU's. "
                 "Copy there with a framework that allocates such memory");
}

// cuda::copy_to_device() with the GIL released. The caller holds a reference that keeps `source` as it is.
inline Status copy_without_gil(const Tensor& source, DLDevice target, StreamHandle stream, Tensor& out) {
  const Ordering before = source.ready.settled();
  {
    GilRelease released;
    DLBRIDGE_TRY(cuda::copy_to_device(source, plain_memory_of(target), stream, out));
  }
  // Another thread may have begun to use the source on another stream: that one, too, has to wait until it is read.
  const Ordering now = source.ready.settled();
  if (now == before || !is_cuda(source.dl.device) || !is_cuda(out.dl.device)) [[likely]]
    return {};
  return cuda::order_across(now.handle, source.dl.device.device_id, out.ready, out.dl.device.device_id);
}

// Host memory (pinned) that a stream of `device` may still write: whoever reads it asks for no stream, so the wait is
// here, with the GIL released.
inline Status wait_on_host(Tensor& tensor, int device) {
  if (tensor.ready.is_ready()) return {};
  const Ordering ready = std::exchange(tensor.ready, Ordering::ready());
  GilRelease released;
  return cuda::synchronize(ready, device);
}

}  // namespace dlbridge::py
