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

void UseGuard::enter_slowly() noexcept {
  if (is_held_ || (detail::uses_depth == 0 && !hooks().lock_uses())) return;
  ++detail::uses_depth;
  is_held_ = true;
}

void UseGuard::leave_slowly() noexcept {
  is_held_ = false;
  if (detail::uses_depth == 0 || --detail::uses_depth != 0) return;  // 0: the process ended during a break
  hooks().unlock_uses();
}

void UseBreak::leave() noexcept {
  detail::uses_depth = 0;
  hooks().unlock_uses();
}

void UseBreak::resume() noexcept { detail::uses_depth = hooks().lock_uses() ? depth_ : 0; }

bool collect_garbage() {
  if (hooks().collect_garbage == nullptr) return false;
  const UseBreak uses;
  hooks().collect_garbage();
  return true;
}

}  // namespace dlbridge::nd
