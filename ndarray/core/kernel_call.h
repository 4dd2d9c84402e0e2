// One call of a kernel on arrays, from the order of the arrays' uses to what came of it.
#pragma once

#include <array>
#include <initializer_list>

#include "dlbridge/cuda_device.h"
#include "ndarray/core/array.h"
#include "ndarray/core/backend.h"

namespace dlbridge::nd {

// begin(), the kernel, end(). The kernel's scratch memory is freed, in stream order, with the object.
class KernelCall {
 public:
  explicit KernelCall(DLDevice device) noexcept : device_(device) {}
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;
  ~KernelCall();

  // Enters the device and acquires the arrays for the thread's stream. They outlive the call.
  Status begin(std::initializer_list<const Tensor*> arrays);
  // One more array.
  Status use(const Tensor& array);

  const Backend& backend() const noexcept { return *backend_; }
  StreamHandle stream() const noexcept { return stream_; }
  Workspace workspace() noexcept { return {allocate, this}; }

  // What the kernel's code means; `what` names the operation. Looking for scratch memory may let go of the lock that
  // guards the tensors (in Python the GIL) after the arrays have been acquired and before the kernel is queued: a use
  // by another thread that began meanwhile is joined here.
  Status end(int code, const char* what);

 private:
  static void* allocate(void* self, std::size_t bytes) noexcept;

  static constexpr std::size_t kMostArrays = kMaxIndexArrays + 2;
  static constexpr std::size_t kMostPieces = 8;
  DLDevice device_;
  StreamHandle stream_ = 0;
  const Backend* backend_ = nullptr;
  std::size_t array_count_ = 0, piece_count_ = 0;
  std::array<const Tensor*, kMostArrays> arrays_;
  std::array<Storage*, kMostPieces> pieces_;
  Status failure_;  // behind a null pointer to scratch memory
  cuda::DeviceGuard guard_;
};

}  // namespace dlbridge::nd
