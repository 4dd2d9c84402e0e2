// The owner discipline: exactly one owner at any moment, released exactly once, ownership moves in one noexcept step.
#pragma once

#include <utility>

namespace dlbridge {

// Keeps the memory behind a tensor alive. Move-only; release runs once, on whichever thread destroys the owner, and
// must not throw. A release function that needs the GIL acquires it itself, and does nothing once the interpreter
// is gone (protocols/common/python_owner.h).
class Owner {
 public:
  using Release = void (*)(void* context) noexcept;

  Owner() noexcept = default;
  Owner(void* context, Release release) noexcept : context_(context), release_(release) {}
  Owner(Owner&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), release_(std::exchange(other.release_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      reset();
      context_ = std::exchange(other.context_, nullptr);
      release_ = std::exchange(other.release_, nullptr);
    }
    return *this;
  }
  Owner(const Owner&) = delete;  // two owners would release twice
  Owner& operator=(const Owner&) = delete;
  ~Owner() { reset(); }

  void reset() noexcept {
    if (const Release release = std::exchange(release_, nullptr)) release(std::exchange(context_, nullptr));
  }
  // Gives the memory up without releasing it: another has taken context() and release_function() over.
  void forget() noexcept {
    context_ = nullptr;
    release_ = nullptr;
  }
  explicit operator bool() const noexcept { return release_ != nullptr; }
  void* context() const noexcept { return context_; }
  Release release_function() const noexcept { return release_; }

 private:
  void* context_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace dlbridge
