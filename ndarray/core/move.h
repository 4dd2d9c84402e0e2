// Copies of arrays on other devices.
#pragma once

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// A copy of `source` on `device` (on its own device, too), dense. To the host: waits; else ordered on streams.
// Blocking calls run without the interpreter's lock where the caller has let go of it.
Status copy_to(const Tensor& source, DLDevice device, Tensor& out);

}  // namespace dlbridge::nd
