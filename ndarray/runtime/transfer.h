// Copies between host and device memory at the speed of the bus, also where the host memory is not page-locked.
#pragma once

#include <cstddef>

#include "dlbridge/errors.h"
#include "dlbridge/stream.h"

namespace dlbridge::nd {

// Both copy `bytes` behind the work queued on `stream` of `device`, and later work on the stream is behind the copy.
// The interpreter's lock is not needed, and is released where the caller holds it.
//
// Page-locked host memory: the device copies by itself. With `blocking` the copy is over on return; else the host
// memory must be left alone until the stream has got there.
// Pageable memory: it may be reused (or, dst of copy_to_host, read) on return, whatever `blocking` says.
// Inside a graph capture only page-locked memory and blocking = false are taken.
Status copy_to_device(void* dst, const void* src, std::size_t bytes, int device, StreamHandle stream, bool blocking);
Status copy_to_host(void* dst, const void* src, std::size_t bytes, int device, StreamHandle stream, bool blocking);

// True for page-locked (or managed) memory: asks the driver.
bool is_pinned(const void* host) noexcept;

}  // namespace dlbridge::nd
