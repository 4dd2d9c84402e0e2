// Waiting for an ordering token: by an event on a stream, or on the host.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include "dlbridge/cuda_device.h"

namespace dlbridge::cuda {

namespace detail {
// One reusable event per thread and device. Re-recording it is safe: cuStreamWaitEvent takes the state of the event
// at its call, and no other thread sees it.
struct ThreadEvents {
  std::array<CUevent, kMaxDevices> events{};

  ThreadEvents() noexcept = default;
  ThreadEvents(const ThreadEvents&) = delete;
  ThreadEvents& operator=(const ThreadEvents&) = delete;
  ~ThreadEvents() {
    for (const CUevent event : events)
      if (event != nullptr && library().pid == ::getpid()) static_cast<void>(functions().event_destroy(event));
  }
};

// The device is current.
inline Status thread_event(int device, CUevent& out) {
  thread_local ThreadEvents cache;
  CUevent& slot = cache.events[static_cast<std::size_t>(device)];
  if (slot == nullptr) [[unlikely]]
    DLBRIDGE_TRY(check(functions().event_create(&slot, kEventDisableTiming), "cuEventCreate"));
  out = slot;
  return {};
}

inline std::string stream_name(StreamHandle stream) {
  if (stream == kLegacyStream) return "the legacy default stream";
  if (stream == kPerThreadStream) return "the per-thread default stream";
  return "stream " + hex(stream);
}

[[gnu::cold, gnu::noinline]] inline Status no_stream(StreamHandle stream) {
  return malformed("stream " + std::to_string(stream) +
                   " is not a CUDA stream: 1 is the legacy default stream, 2 the "
                   "per-thread one, anything else the address of a stream that is alive");
}

enum class Capture : std::uint8_t { kNone, kActive, kForbidden };

// kForbidden: the legacy default stream while another stream captures; any work on it would break that capture.
inline Status capture_state(StreamHandle stream, Capture& out) {
  int status = 0;
  const CUresult result = functions().stream_is_capturing(as_stream(stream), &status);
  if (result == kCaptureImplicit) {
    out = Capture::kForbidden;
    return {};
  }
  out = status == 0 ? Capture::kNone : Capture::kActive;
  return check(result, "cuStreamIsCapturing");
}

inline bool same_capture(StreamHandle a, StreamHandle b) noexcept {
  const auto capture_info = functions().stream_get_capture_info;
  if (capture_info == nullptr) return false;
  int status_a = 0, status_b = 0;
  std::uint64_t id_a = 0, id_b = 0;
  return capture_info(as_stream(a), &status_a, &id_a, nullptr, nullptr, nullptr) == kSuccess &&
         capture_info(as_stream(b), &status_b, &id_b, nullptr, nullptr, nullptr) == kSuccess && status_a == 1 &&
         status_b == 1 && id_a == id_b;
}

[[gnu::cold, gnu::noinline]] inline Status capture_refusal(StreamHandle consumer, const Ordering& ready) {
  const std::string producer =
      ready.kind == Ordering::Kind::kOnStream ? stream_name(ready.handle) : "event " + hex(ready.handle);
  return refused("a CUDA graph is being captured, and " + stream_name(consumer) + " would have to wait for " +
                 producer +
                 ", which is not part of that capture. Exchange the array before the capture begins, use "
                 "the stream that captures on both sides, or ask for no synchronisation (stream=-1)");
}

// Asked before anything is queued: a forbidden record or wait would invalidate the user's capture.
inline Status check_capture(StreamHandle consumer, const Ordering& ready) {
  Capture waits = Capture::kNone;
  Capture records = Capture::kNone;
  DLBRIDGE_TRY(capture_state(consumer, waits));
  const bool on_stream = ready.kind == Ordering::Kind::kOnStream;
  if (on_stream) DLBRIDGE_TRY(capture_state(ready.handle, records));
  if (waits == Capture::kNone && records == Capture::kNone) [[likely]]
    return {};
  if (on_stream && waits == Capture::kActive && records == Capture::kActive && same_capture(consumer, ready.handle))
    return {};
  return capture_refusal(consumer, ready);
}

// The producer's stream belongs to a context other than the primary one (its own, or one recreated by a device
// reset): an event of that context is needed.
[[gnu::cold, gnu::noinline]] inline Status order_through_own_context(StreamHandle consumer, StreamHandle producer,
                                                                     CUresult first_result) {
  CUcontext context = nullptr;
  if (producer <= kPerThreadStream || functions().stream_get_ctx(as_stream(producer), &context) != kSuccess)
    return check(first_result, "cuEventRecord on the producer's stream");
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter_context(context));
  CUevent event = nullptr;
  DLBRIDGE_TRY(check(functions().event_create(&event, kEventDisableTiming), "cuEventCreate"));
  Status status = check(functions().event_record(event, as_stream(producer)), "cuEventRecord on the producer's stream");
  guard.leave();  // the consumer's default streams are those of the caller's context
  if (status.ok()) status = check(functions().stream_wait_event(as_stream(consumer), event, 0), "cuStreamWaitEvent");
  static_cast<void>(functions().event_destroy(event));  // the driver keeps it until the wait is over
  return status;
}

// The driver does not check handles, it follows them: with a destroyed stream every call, cuStreamGetFlags too, ends
// the process (measured, driver 580). What cannot be an address of its structures is caught.
constexpr bool may_be_stream(StreamHandle stream) noexcept {
  return stream == kLegacyStream || stream == kPerThreadStream || (stream >= 4096 && stream % 8 == 0);
}

// Records on `ready`'s device, waits on the consumer's.
[[gnu::noinline]] inline Status order_by_event(StreamHandle consumer, int consumer_device, const Ordering& ready,
                                               int device) {
  if (!may_be_stream(consumer)) [[unlikely]]
    return no_stream(consumer);
  if (!may_be_stream(ready.handle) && ready.kind == Ordering::Kind::kOnStream) [[unlikely]]
    return no_stream(ready.handle);
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  DLBRIDGE_TRY(check_capture(consumer, ready));
  CUevent event = as_event(ready.handle);
  if (ready.kind == Ordering::Kind::kOnStream) {
    DLBRIDGE_TRY(thread_event(device, event));
    const CUresult result = functions().event_record(event, as_stream(ready.handle));
    if (result == kInvalidHandle || result == kInvalidContext || result == kContextIsDestroyed) [[unlikely]]
      return order_through_own_context(consumer, ready.handle, result);
    DLBRIDGE_TRY(check(result, "cuEventRecord on the producer's stream"));
  }
  DeviceGuard consumer_guard;
  if (consumer_device != device) DLBRIDGE_TRY(consumer_guard.enter(consumer_device));
  return check(functions().stream_wait_event(as_stream(consumer), event, 0), "cuStreamWaitEvent");
}
}  // namespace detail

// Makes `consumer` (never 0) wait for `ready` without blocking the host. Work queued on it later sees the data.
// Nothing is called when the data is ready or was made on that stream. Refuses inside a graph capture that the wait
// would break.
inline Status order(StreamHandle consumer, const Ordering& token, int device) {
  const Ordering ready = token.settled();
  if (ready.is_ready() || (ready.kind == Ordering::Kind::kOnStream && ready.handle == consumer)) [[likely]]
    return {};
  return detail::order_by_event(consumer, device, ready, device);
}

// The same where the consumer's stream is one of another device.
inline Status order_across(StreamHandle consumer, int consumer_device, const Ordering& token, int device) {
  const Ordering ready = token.settled();
  if (consumer_device == device) return order(consumer, ready, device);
  if (ready.is_ready()) return {};
  return detail::order_by_event(consumer, consumer_device, ready, device);
}

// For a handle that a user typed, before its first use: also refuses an address with no memory behind it, where the
// driver would crash. Costs a system call; a destroyed stream still cannot be told from a live one.
inline Status check_stream_handle(StreamHandle stream) {
  if (!detail::may_be_stream(stream)) return detail::no_stream(stream);
  if (stream <= kPerThreadStream) return {};
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  unsigned char resident;
  if (::mincore(reinterpret_cast<void*>(stream & ~(page - 1)), 1, &resident) != 0) return detail::no_stream(stream);
  return {};
}

// The host waits: only for copies to the host. Blocks; the caller releases locks (the GIL) first.
inline Status synchronize(const Ordering& token, int device) {
  const Ordering ready = token.settled();
  if (ready.is_ready()) return {};
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  if (ready.kind == Ordering::Kind::kAtEvent)
    return check(functions().event_synchronize(detail::as_event(ready.handle)), "cuEventSynchronize");
  if (!detail::may_be_stream(ready.handle)) [[unlikely]]
    return detail::no_stream(ready.handle);
  detail::Capture capture = detail::Capture::kNone;
  DLBRIDGE_TRY(detail::capture_state(ready.handle, capture));
  if (capture != detail::Capture::kNone) [[unlikely]]
    return refused("a CUDA graph is being captured on " + detail::stream_name(ready.handle) +
                   ", and the host cannot wait for work that is only recorded. Read the array after the capture");
  return check(functions().stream_synchronize(detail::as_stream(ready.handle)), "cuStreamSynchronize");
}

// For a token whose handle is not to be kept: a stream of ours that lives as long as the process waits in its place.
// Call on the thread that made the token, since the per-thread default stream is another one elsewhere.
inline Status move_to_relay(Ordering& ready, int device) {
  StreamHandle relay = 0;
  DLBRIDGE_TRY(relay_stream(device, relay));
  DLBRIDGE_TRY(order(relay, ready, device));
  ready = Ordering::on_stream(relay);
  return {};
}

}  // namespace dlbridge::cuda
