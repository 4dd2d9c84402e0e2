// Which kernels serve a device.
#pragma once

#include <string>

#include "dlbridge/device.h"
#include "dlbridge/errors.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

// The host's table, or CUDA's, whose library is loaded by the first call that needs it.
Status backend_for(DLDevice device, const Backend*& out);

// The kernel library's file, which may not exist. Set once, before the first use.
void set_kernel_library(std::string path);

const std::string& kernel_library();

// Whether the kernel library is there; it is not loaded.
bool cuda_kernels_present();

// The current CUDA device, or the host where there is none that arrays can be computed with.
DLDevice default_device();
// Refuses a device that arrays cannot be made on.
Status check_device(DLDevice device);

// The failure of a kernel as a Status; 0 is success. The message names `what`, the operation.
Status kernel_status(const Backend& backend, int code, const char* what);

}  // namespace dlbridge::nd
