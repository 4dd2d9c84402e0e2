// Ordinary memory of the host for arrays; freed blocks are kept for the next array of about their size.
#pragma once

#include "ndarray/runtime/storage.h"

namespace dlbridge::nd {

// Never destroyed: arrays may be freed at the very end of the process. Any thread.
MemoryResource& host_pool() noexcept;

}  // namespace dlbridge::nd
