#include "ndarray/core/kernel_call.h"

namespace dlbridge::nd {

KernelCall::~KernelCall() {
  while (piece_count_ > 0) release(pieces_[--piece_count_]);
}

Status KernelCall::begin(std::initializer_list<const Tensor*> arrays) {
  DLBRIDGE_TRY(backend_for(device_, backend_));
  stream_ = work_stream(device_);
  if (stream_ == 0) return {};
  DLBRIDGE_TRY(guard_.enter(device_.device_id));
  for (const Tensor* array : arrays) DLBRIDGE_TRY(use(*array));
  return {};
}

Status KernelCall::use(const Tensor& array) {
  if (stream_ == 0) return {};
  arrays_[array_count_++] = &array;
  return acquire(array, stream_);
}

Status KernelCall::end(int code, const char* what) {
  Status joined;
  for (std::size_t k = 0; k < array_count_; ++k)
    if (Status status = acquire(*arrays_[k], stream_); !status.ok()) [[unlikely]] joined = std::move(status);
  if (code == kErrorMemory && !failure_.ok()) return std::move(failure_);
  DLBRIDGE_TRY(kernel_status(*backend_, code, what));
  return joined;
}

void* KernelCall::allocate(void* self, std::size_t bytes) noexcept {
  auto& call = *static_cast<KernelCall*>(self);
  if (call.piece_count_ == kMostPieces) return nullptr;
  try {
    Storage* storage = nullptr;
    call.failure_ = allocate_storage(call.device_, bytes == 0 ? 1 : bytes, call.stream_, storage);
    if (!call.failure_.ok()) return nullptr;
    call.pieces_[call.piece_count_++] = storage;
    return storage->data;
  } catch (...) {  // no memory for the bookkeeping; the kernel between here and end() must not be unwound
    return nullptr;
  }
}

}  // namespace dlbridge::nd
