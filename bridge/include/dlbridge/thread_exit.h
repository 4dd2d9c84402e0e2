// Calls in which a thread may be ended.
#pragma once

#include <unistd.h>

#include <exception>
#include <utility>

namespace dlbridge::detail {

[[noreturn]] inline void stay() noexcept {
  for (;;) ::pause();
}

// In a handler. The unwinding of a thread that ends is the one that has no exception object: to catch it by name binds
// a reference to null.
inline void stay_if_thread_ends() noexcept {
  if (!std::current_exception()) stay();
}

// pthread_exit() and pthread_cancel() unwind the stack, and end the process where they meet a noexcept frame, as
// destructors, deleters and C slots are. CPython before 3.14 ends threads in that way that want the GIL back, in a call
// or in the middle of Python code, after the interpreter has begun to end. Such a thread stays here for as long as the
// process lasts, which is what CPython 3.14 does with it.
template <class Call>
auto outlive_thread_exit(Call&& call) noexcept -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    stay_if_thread_ends();
    std::terminate();
  }
}

}  // namespace dlbridge::detail
