// The threads and page-locked buffers through which pageable memory is copied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dlbridge/errors.h"
#include "dlbridge/stream.h"

namespace dlbridge::nd {

enum class Direction : std::uint8_t { kToDevice, kToHost };

// From here on several threads copy: one alone gets no more than a sixth of the bus.
inline constexpr std::size_t kStagedBytes = std::size_t{4} << 20;

// Copies through page-locked buffers, behind the work queued on `stream` and before later work on it. On return the
// pageable memory is free to be used. The device is current; one such copy at a time in the process, others wait.
Status copy_staged(Direction direction, void* dst, const void* src, std::size_t bytes, int device, StreamHandle stream);

}  // namespace dlbridge::nd
