// The life of the process as the runtime sees it: running, going, or the child of a fork; and what the layer above
// (Python) does for the runtime without being known to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "dlbridge/errors.h"

namespace dlbridge::nd {

enum class Life : std::uint8_t {
  kRunning,
  kFinalising,  // the interpreter is going: nothing is given back to the driver any more, the process does that
  kForked,      // a child of a process that had used CUDA: the driver is of no use, and locks may be held forever
};

namespace detail {
inline std::atomic<Life> life{Life::kRunning};
[[gnu::cold]] Status forked_child();
}  // namespace detail

inline Life life() noexcept { return detail::life.load(std::memory_order_relaxed); }
inline bool is_running() noexcept { return life() == Life::kRunning; }

// From here on releases leave the driver alone. Called when the interpreter begins to go; allocations still work.
inline void shut_down() noexcept { detail::life.store(Life::kFinalising, std::memory_order_relaxed); }

// Fails in the child of a fork. The first call of a process begins to watch for forks: before any use of CUDA here.
Status require_runtime();

// What the layer above offers. All null without it; set once, before the first use of CUDA.
struct Hooks {
  // Frees what only a garbage collector can, with no lock of the runtime held. Any thread.
  void (*collect_garbage)() = nullptr;
  // Lets go of the interpreter's lock where the calling thread holds it, and takes it back with what the first gave.
  void* (*unlock)() = nullptr;
  void (*relock)(void* token) = nullptr;
  // Where the interpreter's lock lets threads run at once: one for the uses of device memory. False: there are no
  // other threads any more, and it is not held.
  bool (*lock_uses)() = nullptr;
  void (*unlock_uses)() = nullptr;
};

namespace detail {
inline constinit Hooks installed_hooks;
inline constinit thread_local int uses_depth = 0;  // of UseGuards that hold the lock
}  // namespace detail

inline Hooks& hooks() noexcept { return detail::installed_hooks; }

// Between the look at a storage's stream and the work that is queued behind it (acquire() in runtime/storage.h) no
// other thread queues its own. The interpreter's lock sees to that where it is one; else this does. A thread that has
// entered may enter again.
class UseGuard {
 public:
  UseGuard() noexcept = default;
  UseGuard(const UseGuard&) = delete;
  UseGuard& operator=(const UseGuard&) = delete;
  ~UseGuard() { leave(); }

  void enter() noexcept {
    if (hooks().lock_uses != nullptr) [[unlikely]]
      enter_slowly();
  }
  void leave() noexcept {
    if (is_held_) [[unlikely]]
      leave_slowly();
  }

 private:
  void enter_slowly() noexcept;
  void leave_slowly() noexcept;
  bool is_held_ = false;
};

// Lets other threads use device memory in the middle of a use: where Python code is run, or the driver blocks.
class UseBreak {
 public:
  UseBreak() noexcept : depth_(hooks().lock_uses != nullptr ? detail::uses_depth : 0) {
    if (depth_ != 0) [[unlikely]]
      leave();
  }
  UseBreak(const UseBreak&) = delete;
  UseBreak& operator=(const UseBreak&) = delete;
  ~UseBreak() {
    if (depth_ != 0) [[unlikely]]
      resume();
  }

 private:
  void leave() noexcept;
  void resume() noexcept;
  int depth_;
};

// Holds the interpreter's lock off while the driver blocks, and that of the uses: work that it waits for may be a host
// function which needs one of them.
class Unlocked {
 public:
  Unlocked() noexcept : token_(hooks().unlock != nullptr ? hooks().unlock() : nullptr) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (token_ != nullptr) hooks().relock(token_);
  }

 private:
  UseBreak uses_;  // the first to go, and the last that is taken back: whoever waits for it holds the other
  void* token_;
};

// False where nobody can do it. Python code runs, with no lock of the runtime held.
bool collect_garbage();

// A kernel of the host that takes a while lets other threads run, where the interpreter's lock would keep them waiting.
// Without one they run anyway, and a thread that went would let go of the lock of the array that it changes.
class LongKernel {
 public:
  LongKernel() noexcept = default;
  LongKernel(const LongKernel&) = delete;
  LongKernel& operator=(const LongKernel&) = delete;
  ~LongKernel() { end(); }

  void begin(std::int64_t elements) noexcept {
    if (elements >= kLong && hooks().unlock != nullptr && hooks().lock_uses == nullptr) token_ = hooks().unlock();
  }
  void end() noexcept {
    if (token_ != nullptr) hooks().relock(std::exchange(token_, nullptr));
  }

 private:
  static constexpr std::int64_t kLong = 8192;  // some microseconds; to let go and take back takes a tenth of one
  void* token_ = nullptr;
};

}  // namespace dlbridge::nd
