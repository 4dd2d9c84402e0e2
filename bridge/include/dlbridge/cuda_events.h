// Events to be used again: to make one costs as much as to record it several times.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "dlbridge/cuda_device.h"

namespace dlbridge::cuda::detail {

// Those that nobody has, by device. Recording one again is safe: who waits for the old record has its state. Never
// destroyed, as owners of memory may die late.
struct IdleEvents {
  std::mutex mutex;
  std::array<std::vector<CUevent>, kMaxDevices> by_device;
};
inline IdleEvents& idle_events() noexcept {
  static auto* events = new IdleEvents;
  return *events;
}

// Any thread. The device is current.
inline Status take_event(int device, CUevent& out) {
  {
    IdleEvents& idle = idle_events();
    const std::lock_guard lock(idle.mutex);
    std::vector<CUevent>& events = idle.by_device[static_cast<std::size_t>(device)];
    if (!events.empty()) {
      out = events.back();
      events.pop_back();
      return {};
    }
  }
  return check(functions().event_create(&out, kEventDisableTiming), "cuEventCreate");
}

// Any thread, any time.
inline void keep_event(int device, CUevent event) noexcept {
  try {
    IdleEvents& idle = idle_events();
    const std::lock_guard lock(idle.mutex);
    idle.by_device[static_cast<std::size_t>(device)].push_back(event);
  } catch (...) {  // out of memory: one event is lost
  }
}

}  // namespace dlbridge::cuda::detail
