// The ordering token of a device tensor: where its data becomes ready. No CUDA header is needed to hold one.
#pragma once

#include <cstdint>

namespace dlbridge {

// A CUDA stream as DLPack and the CUDA Array Interface number it: 1 the legacy default stream, 2 the per-thread
// default stream, anything larger a cudaStream_t / CUstream. The driver takes the three forms as they are.
using StreamHandle = std::uintptr_t;
inline constexpr StreamHandle kLegacyStream = 1;
inline constexpr StreamHandle kPerThreadStream = 2;

// "Ready": nothing to wait for. "On stream": ready when the work queued on `handle` so far is done. "At event":
// ready when the CUevent `handle` has happened. The handle is borrowed: whoever keeps the tensor's owner keeps it.
struct Ordering {
  enum class Kind : std::uint8_t { kReady, kOnStream, kAtEvent };
  Kind kind = Kind::kReady;
  std::uintptr_t handle = 0;

  static constexpr Ordering ready() noexcept { return {}; }
  static constexpr Ordering on_stream(StreamHandle s) noexcept {
    return {Kind::kOnStream, s == 0 ? kLegacyStream : s};  // CUDA's own null stream is the legacy default stream
  }
  static constexpr Ordering at_event(std::uintptr_t event) noexcept { return {Kind::kAtEvent, event}; }
  constexpr bool is_ready() const noexcept { return kind == Kind::kReady; }
  friend constexpr bool operator==(const Ordering&, const Ordering&) noexcept = default;
};

}  // namespace dlbridge
