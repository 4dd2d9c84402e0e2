#include "ndarray/core/kernel_call.h"

#include <algorithm>
#include <utility>

namespace dlbridge::nd {

KernelCall::~KernelCall() {
  uses_.leave();  // before memory goes, by which Python code may be run
  long_.end();
  while (pieces_ != nullptr) release(std::exchange(pieces_, pieces_->next));
}

Status KernelCall::begin() {
  DLBRIDGE_TRY(backend_for(device_, backend_));
  stream_ = work_stream(device_);
  if (stream_ == 0) {
    std::int64_t most = 0;
    for (const Tensor* array : arrays_) most = std::max(most, array->size);
    long_.begin(most);
    return {};
  }
  DLBRIDGE_TRY(guard_.enter(device_.device_id));
  uses_.enter();
  for (const Tensor* array : arrays_) DLBRIDGE_TRY(acquire(*array, stream_));
  return {};
}

Status KernelCall::end(int code, const char* what) {
  long_.end();
  Status joined;
  for (const Tensor* array : arrays_)
    if (Status status = acquire(*array, stream_); !status.ok()) [[unlikely]]
      joined = std::move(status);
  uses_.leave();
  if (code == kErrorMemory && !failure_.ok()) return std::move(failure_);
  DLBRIDGE_TRY(kernel_status(*backend_, code, what));
  return joined;
}

void* KernelCall::allocate(void* self, std::size_t bytes) noexcept {
  auto& call = *static_cast<KernelCall*>(self);
  try {
    Storage* storage = nullptr;
    call.failure_ = allocate_storage(call.device_, bytes == 0 ? 1 : bytes, call.stream_, storage);
    if (!call.failure_.ok()) return nullptr;
    storage->next = std::exchange(call.pieces_, storage);
    return storage->data;
  } catch (...) {  // no memory for the bookkeeping; the kernel between here and end() must not be unwound
    return nullptr;
  }
}

}  // namespace dlbridge::nd
