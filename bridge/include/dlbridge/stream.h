// The ordering token of a device tensor: where its data becomes ready. No CUDA header is needed to hold one.
#pragma once

#include <cstdint>

#include "dlbridge/atomic.h"

namespace dlbridge {

// A CUDA stream as DLPack and the CUDA Array Interface number it: 1 the legacy default stream, 2 the per-thread
// default stream, anything larger a cudaStream_t / CUstream. The driver takes the three forms as they are.
using StreamHandle = std::uintptr_t;
inline constexpr StreamHandle kLegacyStream = 1;
inline constexpr StreamHandle kPerThreadStream = 2;

// "Ready": nothing to wait for. "On stream": ready when the work queued on `handle` so far is done. "At event":
// ready when the CUevent `handle` has happened. "Tracked": an owner that several tensors share notes the stream that
// used the memory last at the address `handle`; settled() reads it. The handle is borrowed: whoever keeps the tensor's
// owner keeps it.
struct Ordering {
  enum class Kind : std::uint8_t { kReady, kOnStream, kAtEvent, kTracked };
  Kind kind = Kind::kReady;
  std::uintptr_t handle = 0;

  static constexpr Ordering ready() noexcept { return {}; }
  static constexpr Ordering on_stream(StreamHandle s) noexcept {
    return {Kind::kOnStream, s == 0 ? kLegacyStream : s};  // CUDA's own null stream is the legacy default stream
  }
  static constexpr Ordering at_event(std::uintptr_t event) noexcept { return {Kind::kAtEvent, event}; }
  // `cell` holds 0 while the memory is ready; it changes under the lock that guards the tensors (in Python the GIL),
  // and may be read without: a stream that is noted there already waits for the one before.
  static Ordering on_stream_of(const Atomic<StreamHandle>* cell) noexcept {
    return {Kind::kTracked, reinterpret_cast<std::uintptr_t>(cell)};
  }
  // What a tracked token says at this moment; any other token is itself.
  Ordering settled() const noexcept {
    if (kind != Kind::kTracked) [[likely]]
      return *this;
    const StreamHandle stream = reinterpret_cast<const Atomic<StreamHandle>*>(handle)->load();
    return stream == 0 ? ready() : on_stream(stream);
  }
  bool is_ready() const noexcept { return settled().kind == Kind::kReady; }
  friend constexpr bool operator==(const Ordering&, const Ordering&) noexcept = default;
};

}  // namespace dlbridge
