// Devices, contexts, pointers and streams, over the driver API alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "dlbridge/atomic.h"
#include "dlbridge/cuda_library.h"
#include "dlbridge/device.h"
#include "dlbridge/errors.h"
#include "dlbridge/stream.h"

namespace dlbridge::cuda {

namespace detail {
// What the process holds of each device; retained for its whole life, so that late owners can still free.
struct DeviceState {
  Atomic<CUcontext> context;
  Atomic<CUstream> relay;
};
inline std::array<DeviceState, kMaxDevices>& device_states() noexcept {
  static std::array<DeviceState, kMaxDevices> states;
  return states;
}
inline pthread_mutex_t& device_mutex() noexcept {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  return mutex;
}

inline CUstream as_stream(StreamHandle handle) noexcept { return reinterpret_cast<CUstream>(handle); }
inline CUevent as_event(std::uintptr_t handle) noexcept { return reinterpret_cast<CUevent>(handle); }

[[gnu::cold, gnu::noinline]] inline Status no_such_device(int device) {
  return malformed("device cuda:" + std::to_string(device) + " does not exist; the CUDA driver sees " +
                   std::to_string(device_count()) + " device(s), counted from 0");
}

[[gnu::cold, gnu::noinline]] inline Status retain_primary_context(int device, CUcontext& out) {
  DLBRIDGE_TRY(require_driver());
  if (device < 0 || device >= device_count() || device >= kMaxDevices) return no_such_device(device);
  DeviceState& state = device_states()[static_cast<std::size_t>(device)];
  const ScopedLock lock(device_mutex());
  out = state.context.load();
  if (out != nullptr) return {};
  DLBRIDGE_TRY(check(functions().device_primary_ctx_retain(&out, device), "cuDevicePrimaryCtxRetain"));
  state.context.store(out);
  return {};
}
}  // namespace detail

// The context that cudart and every framework use on the device. Created only when nobody did before.
inline Status primary_context(int device, CUcontext& out) {
  if (static_cast<unsigned>(device) < static_cast<unsigned>(kMaxDevices)) [[likely]] {
    out = detail::device_states()[static_cast<std::size_t>(device)].context.load();
    if (out != nullptr) [[likely]]
      return {};
  }
  return detail::retain_primary_context(device, out);
}

// Makes a device current for its scope. cudart follows the current context, so foreign calls inside the scope run
// there too; a device that they select replaces only what was pushed, and the pop brings back the caller's.
// Enter and destroy on the same thread.
class DeviceGuard {
 public:
  DeviceGuard() noexcept = default;
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() { leave(); }

  Status enter(int device) {
    CUcontext wanted = nullptr;
    DLBRIDGE_TRY(primary_context(device, wanted));
    return enter_context(wanted);
  }
  Status enter_context(CUcontext wanted) {
    leave();
    CUcontext current = nullptr;
    DLBRIDGE_TRY(check(functions().ctx_get_current(&current), "cuCtxGetCurrent"));
    if (current == wanted) return {};
    DLBRIDGE_TRY(check(functions().ctx_push_current(wanted), "cuCtxPushCurrent"));
    pushed_ = true;
    return {};
  }
  void leave() noexcept {
    if (!pushed_) return;
    pushed_ = false;
    CUcontext popped;
    static_cast<void>(functions().ctx_pop_current(&popped));  // a failing driver has said so in the guarded call
  }

 private:
  bool pushed_ = false;
};

// The device that the calling thread has selected; 0 where it has none yet, as cudart would take.
inline Status current_device(int& out) {
  DLBRIDGE_TRY(require_driver());
  const CUresult result = functions().ctx_get_device(&out);
  if (result != kInvalidContext) return check(result, "cuCtxGetDevice");
  out = 0;
  return {};
}

namespace detail {
struct PointerFacts {
  unsigned memory_type = 0;  // 0: not CUDA's
  unsigned managed = 0;
  int ordinal = -1;
};

inline CUresult query_pointer(const void* pointer, PointerFacts& facts) noexcept {
  constexpr int kAttributes[3] = {kAttributeMemoryType, kAttributeIsManaged, kAttributeDeviceOrdinal};
  void* values[3] = {&facts.memory_type, &facts.managed, &facts.ordinal};
  // The plural form leaves memory_type 0 for a pointer that is not CUDA's, the singular one would fail.
  const CUresult result =
      functions().pointer_get_attributes(3, kAttributes, values, reinterpret_cast<CUdeviceptr>(pointer));
  if (result != kInvalidValue && result != kInvalidContext) return result;
  facts.memory_type = 0;
  return kSuccess;
}

[[gnu::cold, gnu::noinline]] inline Status not_cuda_memory(const void* pointer) {
  return malformed("the data pointer " + hex(reinterpret_cast<std::uintptr_t>(pointer)) +
                   " is not CUDA memory: the driver does not know it. The producer gave host memory, or freed it");
}
}  // namespace detail

// Which device a pointer belongs to: kDLCUDA, kDLCUDAManaged (the id of its home device) or kDLCUDAHost (id 0).
inline Status device_of_pointer(const void* pointer, DLDevice& out) {
  DLBRIDGE_TRY(require_driver());
  detail::PointerFacts facts;
  DLBRIDGE_TRY(check(detail::query_pointer(pointer, facts), "cuPointerGetAttributes"));
  if (facts.memory_type == 0) [[unlikely]]
    return detail::not_cuda_memory(pointer);
  if (facts.managed != 0) out = {kDLCUDAManaged, facts.ordinal < 0 ? 0 : facts.ordinal};
  else if (facts.memory_type == kMemoryTypeHost) out = {kDLCUDAHost, 0};
  else out = {kDLCUDA, facts.ordinal};
  return {};
}

namespace detail {
inline std::array<StreamHandle, kMaxDevices>& thread_streams() noexcept {
  thread_local std::array<StreamHandle, kMaxDevices> streams{};  // 0: not set
  return streams;
}

// Streams that live as long as the process: their handles may be kept and used at any time. Others may be destroyed,
// and the driver ends the process on a dead handle. Insert-only; what finds no room is taken for one that may be
// destroyed.
class LastingStreams {
 public:
  bool contains(StreamHandle stream) const noexcept {
    for (std::size_t i = slot_of(stream), n = 0; n < kProbes; ++n, i = (i + 1) % kSlots) {
      const StreamHandle found = slots_[i].load();
      if (found == stream) return true;
      if (found == 0) return false;
    }
    return false;
  }
  void insert(StreamHandle stream) noexcept {
    const ScopedLock lock(mutex_);
    for (std::size_t i = slot_of(stream), n = 0; n < kProbes; ++n, i = (i + 1) % kSlots) {
      const StreamHandle found = slots_[i].load();
      if (found == stream) return;
      if (found == 0) return slots_[i].store(stream);
    }
  }

 private:
  static constexpr std::size_t kSlots = 4096;
  static constexpr std::size_t kProbes = 64;
  static std::size_t slot_of(StreamHandle stream) noexcept { return ((stream >> 4) ^ (stream >> 16)) % kSlots; }

  std::array<Atomic<StreamHandle>, kSlots> slots_;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};
inline LastingStreams& lasting_streams() noexcept {
  static LastingStreams streams;
  return streams;
}
}  // namespace detail

// Whoever makes streams that are never destroyed says so.
inline void note_lasting_stream(StreamHandle stream) noexcept { detail::lasting_streams().insert(stream); }
// The per-thread default stream is another one on each thread, and ends with it: to be kept, it is none.
inline bool is_lasting_stream(StreamHandle stream) noexcept {
  return stream == kLegacyStream || (stream > kPerThreadStream && detail::lasting_streams().contains(stream));
}

// The stream that dlbridge itself queues work on for the calling thread.
inline StreamHandle current_stream(int device) noexcept {
  if (static_cast<unsigned>(device) >= static_cast<unsigned>(kMaxDevices)) return kLegacyStream;
  const StreamHandle stream = detail::thread_streams()[static_cast<std::size_t>(device)];
  return stream == 0 ? kLegacyStream : stream;
}
// The stream is borrowed: it must outlive its being current.
inline void set_current_stream(int device, StreamHandle stream) noexcept {
  if (static_cast<unsigned>(device) < static_cast<unsigned>(kMaxDevices))
    detail::thread_streams()[static_cast<std::size_t>(device)] = stream;
}

namespace detail {
[[gnu::cold, gnu::noinline]] inline Status create_relay_stream(int device, CUstream& out) {
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  DeviceState& state = device_states()[static_cast<std::size_t>(device)];
  const ScopedLock lock(device_mutex());
  out = state.relay.load();
  if (out != nullptr) return {};
  DLBRIDGE_TRY(check(functions().stream_create(&out, kStreamNonBlocking), "cuStreamCreate"));
  note_lasting_stream(reinterpret_cast<StreamHandle>(out));
  state.relay.store(out);
  return {};
}
}  // namespace detail

// A stream of ours that lives as long as the process: what a producer without a stream of its own is asked to
// synchronise with, and where copies run.
inline Status relay_stream(int device, StreamHandle& out) {
  CUstream stream = nullptr;
  if (static_cast<unsigned>(device) < static_cast<unsigned>(kMaxDevices))
    stream = detail::device_states()[static_cast<std::size_t>(device)].relay.load();
  if (stream == nullptr) [[unlikely]]
    DLBRIDGE_TRY(detail::create_relay_stream(device, stream));
  out = reinterpret_cast<StreamHandle>(stream);
  return {};
}

}  // namespace dlbridge::cuda
