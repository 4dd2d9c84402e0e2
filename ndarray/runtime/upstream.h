// Where the caching pool gets its segments: device, managed or pinned memory, straight from the driver.
#pragma once

#include <cstddef>

#include "dlbridge/device.h"
#include "dlbridge/errors.h"
#include "ndarray/runtime/driver.h"

namespace dlbridge::nd {

enum class MemoryKind : std::uint8_t { kDevice, kManaged, kPinned };

struct MemoryKindInfo {
  const char* name;
  DLDeviceType device_type;
};
inline constexpr MemoryKindInfo kMemoryKinds[] = {
    {"device", kDLCUDA}, {"managed", kDLCUDAManaged}, {"pinned", kDLCUDAHost}};
constexpr const MemoryKindInfo& info(MemoryKind kind) noexcept { return kMemoryKinds[static_cast<int>(kind)]; }

// Makes the device current for the call. Harmless to graph captures of other threads; may block, never waits for the
// device. kOutOfMemoryResult is returned as such, for the caller to make room.
CUresult allocate_upstream(MemoryKind kind, int device, std::size_t bytes, void*& out) noexcept;
// Waits until the whole device has finished with the memory. Does nothing once the process is going.
void free_upstream(MemoryKind kind, int device, void* data) noexcept;
const char* upstream_function(MemoryKind kind) noexcept;  // for messages

}  // namespace dlbridge::nd
