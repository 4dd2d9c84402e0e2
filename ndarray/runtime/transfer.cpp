#include "ndarray/runtime/transfer.h"

#include "dlbridge/cuda_driver.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/staging.h"
#include "ndarray/runtime/streams.h"

namespace dlbridge::nd {

namespace {

[[gnu::cold]] Status not_in_a_capture(StreamHandle stream) {
  return refused("a CUDA graph is being captured on " + cuda::detail::stream_name(stream) +
                 ", and the host cannot take part in it. Copy before the capture begins, or to and from page-locked "
                 "memory (empty_pinned()) with blocking=False");
}

Status queue(Direction direction, void* dst, const void* src, std::size_t bytes, CUstream stream) {
  const cuda::Functions& fn = cuda::functions();
  if (direction == Direction::kToDevice)
    return cuda::check(fn.memcpy_htod_async(reinterpret_cast<CUdeviceptr>(dst), src, bytes, stream),
                       "cuMemcpyHtoDAsync");
  return cuda::check(fn.memcpy_dtoh_async(dst, reinterpret_cast<CUdeviceptr>(src), bytes, stream), "cuMemcpyDtoHAsync");
}

Status copy(Direction direction, void* dst, const void* src, std::size_t bytes, int device, StreamHandle stream,
            bool blocking) {
  if (bytes == 0) return {};
  DLBRIDGE_TRY(require_runtime());
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  const bool pinned = is_pinned(direction == Direction::kToDevice ? src : dst);
  if ((!pinned || blocking) && capture_of(stream)) return not_in_a_capture(stream);
  const Unlocked unlocked;
  if (!pinned && bytes >= kStagedBytes) return copy_staged(direction, dst, src, bytes, device, stream);
  const CUstream queue_on = cuda::detail::as_stream(stream);
  DLBRIDGE_TRY(queue(direction, dst, src, bytes, queue_on));
  // The driver has taken pageable memory into a buffer of its own when the call returns; what it brings from the
  // device, and what it reads from page-locked memory, comes later.
  const bool is_over = direction == Direction::kToDevice && !pinned;
  if (is_over || (pinned && !blocking)) return {};
  return cuda::check(cuda::functions().stream_synchronize(queue_on), "cuStreamSynchronize");
}

}  // namespace

bool is_pinned(const void* host) noexcept {
  cuda::detail::PointerFacts facts;
  return cuda::detail::query_pointer(host, facts) == cuda::kSuccess && facts.memory_type != 0;
}

Status copy_to_device(void* dst, const void* src, std::size_t bytes, int device, StreamHandle stream, bool blocking) {
  return copy(Direction::kToDevice, dst, src, bytes, device, stream, blocking);
}

Status copy_to_host(void* dst, const void* src, std::size_t bytes, int device, StreamHandle stream, bool blocking) {
  return copy(Direction::kToHost, dst, src, bytes, device, stream, blocking);
}

}  // namespace dlbridge::nd
