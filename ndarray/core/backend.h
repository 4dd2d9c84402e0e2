// Which kernels serve a device.
#pragma once

#include "dlbridge/device.h"
#include "dlbridge/errors.h"
#include "ndarray/core/kernel_api.h"

namespace dlbridge::nd {

// The host's table, or CUDA's, whose library is loaded by the first call that needs it.
Status backend_for(DLDevice device, const Backend*& out);

// Where the kernel library lies: beside the extension module. Set once, before the first use.
void set_kernel_library_folder(const char* folder);

// Why CUDA arrays cannot be made here; empty where they can (loads nothing but the driver).
bool cuda_kernels_present();

// The failure of a kernel as a Status; 0 is success. The message names `what`, the operation.
Status kernel_status(const Backend& backend, int code, const char* what);

// Scratch memory of a call: freed, in stream order, when the call has been queued.
class CallWorkspace {
 public:
  CallWorkspace(DLDevice device, StreamHandle stream) noexcept : device_(device), stream_(stream) {}
  CallWorkspace(const CallWorkspace&) = delete;
  CallWorkspace& operator=(const CallWorkspace&) = delete;
  ~CallWorkspace();
  Workspace get() noexcept { return {allocate, this}; }
  // The failure behind a null pointer.
  Status take_failure() noexcept { return std::move(failure_); }

 private:
  static void* allocate(void* self, std::size_t bytes);
  static constexpr int kPieces = 8;
  DLDevice device_;
  StreamHandle stream_;
  int count_ = 0;
  struct Storage* pieces_[kPieces];
  Status failure_;
};

}  // namespace dlbridge::nd
