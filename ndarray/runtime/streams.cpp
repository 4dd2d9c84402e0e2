#include "ndarray/runtime/streams.h"

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dlbridge/cuda_driver.h"
#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_set<StreamHandle> lasting;
  std::vector<std::pair<StreamKind, StreamHandle>> idle;
  std::array<std::vector<CUevent>, cuda::kMaxDevices> events;
};
Registry& registry() noexcept {
  static auto* made = new Registry;  // lives on for owners that are released last of all
  return *made;
}

std::atomic<int>& capture_count() noexcept {
  static std::atomic<int> count{0};
  return count;
}

bool pop_idle(const StreamKind& kind, StreamHandle& out) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (auto it = r.idle.begin(); it != r.idle.end(); ++it) {
    if (!(it->first == kind)) continue;
    out = it->second;
    r.idle.erase(it);
    return true;
  }
  return false;
}

bool is_relay(StreamHandle stream) noexcept {
  for (const cuda::detail::DeviceState& state : cuda::detail::device_states())
    if (reinterpret_cast<StreamHandle>(state.relay.load()) == stream) return true;
  return false;
}

}  // namespace

Status create_stream(const StreamKind& kind, StreamHandle& out) {
  DLBRIDGE_TRY(require_runtime());
  if (pop_idle(kind, out)) return {};
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(kind.device));
  CUstream made = nullptr;
  const unsigned flags = kind.non_blocking ? cuda::kStreamNonBlocking : 0;
  if (kind.priority == 0)
    DLBRIDGE_TRY(cuda::check(cuda::functions().stream_create(&made, flags), "cuStreamCreate"));
  else
    DLBRIDGE_TRY(cuda::check(driver().stream_create_with_priority(&made, flags, kind.priority),
                             "cuStreamCreateWithPriority"));
  out = reinterpret_cast<StreamHandle>(made);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.idle.reserve(r.idle.size() + 1);
  r.lasting.insert(out);
  return {};
}

void recycle_stream(const StreamKind& kind, StreamHandle stream) noexcept {
  if (!is_running() || capture_of(stream)) return;  // one that still captures would spoil its next user's work
  try {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    r.idle.emplace_back(kind, stream);
  } catch (...) {  // out of memory: the stream is never used again
  }
}

bool is_lasting_stream(StreamHandle stream) noexcept {
  if (stream <= kPerThreadStream || is_relay(stream)) return true;
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.lasting.contains(stream);
}

std::optional<std::uint64_t> capture_of(StreamHandle stream) noexcept {
  int status = 0;
  std::uint64_t id = 0;
  const auto info = cuda::functions().stream_get_capture_info;
  const CUresult result = info != nullptr
                              ? info(cuda::detail::as_stream(stream), &status, &id, nullptr, nullptr, nullptr)
                              : cuda::functions().stream_is_capturing(cuda::detail::as_stream(stream), &status);
  if (result != cuda::kSuccess || status == 0) return std::nullopt;
  return id;
}

int open_captures() noexcept { return capture_count().load(std::memory_order_relaxed); }

Status begin_capture(StreamHandle stream, int mode) {
  DLBRIDGE_TRY(cuda::check(driver().stream_begin_capture(cuda::detail::as_stream(stream), mode),
                           "cuStreamBeginCapture"));
  capture_count().fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status end_capture(StreamHandle stream, CUgraph& out) {
  const CUresult result = driver().stream_end_capture(cuda::detail::as_stream(stream), &out);
  // An invalidated capture ends, too, with an error; only "no capture here" leaves the count.
  if (result == cuda::kSuccess || cuda::detail::is_capture_error(result))
    capture_count().fetch_sub(1, std::memory_order_relaxed);
  return cuda::check(result, "cuStreamEndCapture");
}

Status ensure_peer(int device, int peer) {
  if (device == peer) return {};
  static std::array<std::array<std::atomic<bool>, cuda::kMaxDevices>, cuda::kMaxDevices> open{};
  CUcontext context = nullptr;
  CUcontext peer_context = nullptr;
  DLBRIDGE_TRY(cuda::primary_context(device, context));  // both numbers are good after these
  DLBRIDGE_TRY(cuda::primary_context(peer, peer_context));
  std::atomic<bool>& done = open[static_cast<std::size_t>(device)][static_cast<std::size_t>(peer)];
  if (done.load(std::memory_order_acquire)) return {};
  int can = 0;
  DLBRIDGE_TRY(cuda::check(driver().device_can_access_peer(&can, device, peer), "cuDeviceCanAccessPeer"));
  if (can == 0)
    return malformed("cuda:" + std::to_string(device) + " cannot reach the memory of cuda:" + std::to_string(peer) +
                     ": the two devices have no peer access. Copy the array to cuda:" + std::to_string(device) +
                     " first, with to_device()");
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter_context(context));
  const CUresult result = driver().ctx_enable_peer_access(peer_context, 0);
  if (result != kPeerAccessAlreadyEnabled) DLBRIDGE_TRY(cuda::check(result, "cuCtxEnablePeerAccess"));
  done.store(true, std::memory_order_release);
  return {};
}

Status take_event(int device, CUevent& out) {
  {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    std::vector<CUevent>& idle = r.events[static_cast<std::size_t>(device)];
    if (!idle.empty()) {
      out = idle.back();
      idle.pop_back();
      return {};
    }
  }
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  return cuda::check(cuda::functions().event_create(&out, cuda::kEventDisableTiming), "cuEventCreate");
}

void give_event(int device, CUevent event) noexcept {
  if (event == nullptr || !is_running()) return;
  try {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    r.events[static_cast<std::size_t>(device)].push_back(event);
  } catch (...) {  // out of memory: one event is lost
  }
}

}  // namespace dlbridge::nd
