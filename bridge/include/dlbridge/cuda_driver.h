// The CUDA side without a CUDA toolkit: libcuda.so.1 is opened at run time, by the first call that needs it.
#pragma once

#include "dlbridge/cuda_device.h"   // contexts, the device of a pointer, guards, current and relay streams
#include "dlbridge/cuda_library.h"  // loading, availability, errors
#include "dlbridge/cuda_order.h"    // waiting for an ordering token
