// Memory of one GPU as another one reaches it: peer access, and copies between two devices.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

#include "dlbridge/cuda_device.h"

namespace dlbridge::cuda {

namespace detail {
// Peer access that ensure_peer() has opened: the driver is asked once.
inline std::atomic<bool>& peer_is_open(int device, int peer) noexcept {
  static std::array<std::array<std::atomic<bool>, kMaxDevices>, kMaxDevices> open{};
  return open[static_cast<std::size_t>(device)][static_cast<std::size_t>(peer)];
}

inline Status open_peer(int device, int peer, bool& reachable) {
  reachable = true;
  if (device == peer) return {};
  CUcontext context = nullptr;
  CUcontext peer_context = nullptr;
  DLBRIDGE_TRY(primary_context(device, context));  // both numbers are good after these
  DLBRIDGE_TRY(primary_context(peer, peer_context));
  std::atomic<bool>& done = peer_is_open(device, peer);
  if (done.load(std::memory_order_acquire)) return {};
  int can = 0;
  DLBRIDGE_TRY(check(functions().device_can_access_peer(&can, device, peer), "cuDeviceCanAccessPeer"));
  reachable = can != 0;
  if (!reachable) return {};
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter_context(context));
  const CUresult result = functions().ctx_enable_peer_access(peer_context, 0);
  if (result != kPeerAccessAlreadyEnabled) DLBRIDGE_TRY(check(result, "cuCtxEnablePeerAccess"));
  done.store(true, std::memory_order_release);
  return {};
}
}  // namespace detail

// Lets `device` reach the memory of `peer`. ErrorCode::kMalformed where the hardware has no way. Cheap once it is done.
inline Status ensure_peer(int device, int peer) {
  bool reachable = false;
  DLBRIDGE_TRY(detail::open_peer(device, peer, reachable));
  if (reachable) return {};
  return malformed("cuda:" + std::to_string(device) + " cannot reach the memory of cuda:" + std::to_string(peer) +
                   ": the two devices have no peer access. Copy the array to cuda:" + std::to_string(device) +
                   " first, with to_device()");
}

// Copies `bytes` from one device to another, or within one, on `stream` of the device that receives. The streams of
// both are the caller's to order. Needs no peer access, but opens it where the hardware has it: without it the bytes
// pass through the host, at a fraction of the speed.
inline Status copy_between_devices(void* dst, int dst_device, const void* src, int src_device, std::size_t bytes,
                                   StreamHandle stream) {
  if (bytes == 0) return {};
  const auto to = reinterpret_cast<CUdeviceptr>(dst);
  const auto from = reinterpret_cast<CUdeviceptr>(src);
  CUcontext dst_context = nullptr;
  CUcontext src_context = nullptr;
  DLBRIDGE_TRY(primary_context(dst_device, dst_context));
  DLBRIDGE_TRY(primary_context(src_device, src_context));
  bool reachable = false;
  DLBRIDGE_TRY(detail::open_peer(dst_device, src_device, reachable));
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter_context(dst_context));
  const CUstream queue_on = detail::as_stream(stream);
  if (dst_device == src_device)
    return check(functions().memcpy_dtod_async(to, from, bytes, queue_on), "cuMemcpyDtoDAsync");
  return check(functions().memcpy_peer_async(to, dst_context, from, src_context, bytes, queue_on), "cuMemcpyPeerAsync");
}

}  // namespace dlbridge::cuda
