// Copies on request, throwing: dense_copy, to_device; and waiting for a tensor's data.
#pragma once

#include <cstdint>
#include <utility>

#include "dlbridge/device_copy.h"
#include "dlbridge/exception.h"
#include "dlbridge/options.h"
#include "dlbridge/tensor.h"

namespace dlbridge {

namespace detail {
// The axes back to front: a view, without the owner.
inline Tensor reversed_axes(const Tensor& t) {
  Tensor out = alias_of(t);
  for (std::int32_t i = 0, k = t.dl.ndim - 1; i < k; ++i, --k) {
    std::swap(out.dl.shape[i], out.dl.shape[k]);
    std::swap(out.dl.strides[i], out.dl.strides[k]);
  }
  return out;
}
}  // namespace detail

// A copy on `device` (cpu or cuda), writable, dense in C order. A host copy is complete on return, a device copy is
// ordered before later work on `stream`.
inline Tensor to_device(const Tensor& t, DLDevice device, stream_ref stream = {}) {
  Tensor out;
  throw_if_failed("to_device", cuda::copy_to_device(t, device, stream.handle(), out));
  return out;
}

// A copy where the tensor is (pinned memory: on the CPU), writable and dense.
inline Tensor dense_copy(const Tensor& t, stream_ref stream = {}) {
  const DLDevice device = is_cuda(t.dl.device) ? DLDevice{kDLCUDA, t.dl.device.device_id} : DLDevice{kDLCPU, 0};
  if (!is_cuda(t.dl.device) || is_c_contiguous(t.dl)) return to_device(t, device, stream);
  // A copy within a device may keep a permuted order of axes; what is asked for here is C order, by way of the host.
  Tensor out = to_device(t, device, stream);
  if (is_c_contiguous(out.dl)) return out;
  return to_device(to_device(t, {kDLCPU, 0}), device, stream);
}

// The same in Fortran order.
inline Tensor dense_copy_f(const Tensor& t, stream_ref stream = {}) {
  Tensor out = dense_copy(detail::reversed_axes(t), stream);
  for (std::int32_t i = 0, j = out.dl.ndim - 1; i < j; ++i, --j) {
    std::swap(out.dl.shape[i], out.dl.shape[j]);
    std::swap(out.dl.strides[i], out.dl.strides[j]);
  }
  return out;
}

namespace detail {
[[gnu::cold, gnu::noinline]] inline void order_now(const Ordering& ready, DLDevice memory, const options& o) {
  const int device = is_cuda(memory) ? memory.device_id : 0;
  if (o.sync == sync::host || !is_cuda(memory)) return throw_if_failed("wait", cuda::synchronize(ready, device));
  const StreamHandle stream = o.stream ? o.stream.handle() : cuda::current_stream(device);
  throw_if_failed("wait", cuda::order(stream, ready, device));
}
}  // namespace detail

// Makes the consumer wait for the tensor's data as `o` says: its stream by an event, or the host. Host memory that a
// device still writes is always waited for on the host.
inline void order_for_use(const Ordering& ready, DLDevice memory, const options& o) {
  if (!ready.is_ready() && o.sync != sync::none) [[unlikely]]
    detail::order_now(ready, memory, o);
}
inline void order_for_use(const Tensor& t, const options& o) { order_for_use(t.ready, t.dl.device, o); }

}  // namespace dlbridge
