// One call of a kernel on arrays, from the order of the arrays' uses to what came of it.
#pragma once

#include <span>

#include "dlbridge/cuda_device.h"
#include "ndarray/core/array.h"
#include "ndarray/core/backend.h"
#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

// begin(), the kernel, end(). The kernel may ask for scratch memory as often as it likes; it is freed, in stream order,
// with the object.
class KernelCall {
 public:
  // The arrays that the kernel reads and writes; they outlive the call, and so does the span.
  KernelCall(DLDevice device, std::span<const Tensor* const> arrays) noexcept : device_(device), arrays_(arrays) {}
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;
  ~KernelCall();

  // Enters the device and acquires the arrays for the thread's stream. Until end() no other thread uses device memory;
  // on the host other threads run meanwhile, where the arrays are large.
  Status begin();

  const Backend& backend() const noexcept { return *backend_; }
  StreamHandle stream() const noexcept { return stream_; }
  Workspace workspace() noexcept { return {allocate, this}; }

  // The code of a kernel that waits for the device: without the locks of the interpreter and of the uses, for work that
  // it waits for may be a host function which needs one.
  template <class Args>
  int wait_for(int (*Backend::*kernel)(const Args&), const Args& args) const {
    if (stream_ == 0) return (backend_->*kernel)(args);
    const Unlocked unlocked;
    return (backend_->*kernel)(args);
  }

  // What the kernel's code means; `what` names the operation. Looking for scratch memory may let other threads in
  // after the arrays have been acquired and before the kernel is queued: a use that began meanwhile is joined here.
  Status end(int code, const char* what);

 private:
  static void* allocate(void* self, std::size_t bytes) noexcept;

  DLDevice device_;
  StreamHandle stream_ = 0;
  const Backend* backend_ = nullptr;
  std::span<const Tensor* const> arrays_;
  Storage* pieces_ = nullptr;  // the latest piece of scratch memory, and by Storage::next those before it
  Status failure_;             // behind a null pointer to scratch memory
  cuda::DeviceGuard guard_;
  UseGuard uses_;
  LongKernel long_;
};

}  // namespace dlbridge::nd
