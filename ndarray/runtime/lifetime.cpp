#include "ndarray/runtime/lifetime.h"

#include <pthread.h>

#include "dlbridge/cuda_driver.h"

namespace dlbridge::nd {

namespace detail {

Status forked_child() {
  return {ErrorCode::kCuda,
          "CUDA was used before this process was forked, and the driver does not work in the child. Start the process "
          "with the 'spawn' method, or use CUDA in the child only"};
}

namespace {
void mark_child() noexcept { life.store(Life::kForked, std::memory_order_relaxed); }
}  // namespace

}  // namespace detail

Status require_runtime() {
  if (life() == Life::kForked) [[unlikely]]
    return detail::forked_child();
  DLBRIDGE_TRY(cuda::require_driver());
  static const int watching = ::pthread_atfork(nullptr, nullptr, detail::mark_child);
  static_cast<void>(watching);  // it fails for want of memory only; then the driver's own error says the same later
  return {};
}

Hooks& hooks() noexcept {
  static Hooks installed;
  return installed;
}

}  // namespace dlbridge::nd
