// The life of the process as the runtime sees it: running, going, or the child of a fork; and what the layer above
// (Python) does for the runtime without being known to it.
#pragma once

#include <atomic>
#include <cstdint>

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
};
Hooks& hooks() noexcept;

// Holds the interpreter's lock off while the driver blocks: work that it waits for may be a host function which needs
// that lock.
class Unlocked {
 public:
  Unlocked() noexcept : token_(hooks().unlock != nullptr ? hooks().unlock() : nullptr) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (token_ != nullptr) hooks().relock(token_);
  }

 private:
  void* token_;
};

}  // namespace dlbridge::nd
