// Counters and published pointers, and a lock for cold paths. <atomic> and <mutex> would cost every translation unit
// that includes the SDK 0.1 s.
#pragma once

#include <pthread.h>

namespace dlbridge {

// A word that threads share: loads acquire, stores release, add and sub do both.
template <class T>
class Atomic {
 public:
  constexpr explicit Atomic(T value = T()) noexcept : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load() const noexcept { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
  operator T() const noexcept { return load(); }  // NOLINT(google-explicit-constructor)
  void store(T value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  // Stores `value` where `expected` is what is there; else says in `expected` what is.
  bool replace(T& expected, T value) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }
  // The value before.
  T add(T n) noexcept { return __atomic_fetch_add(&value_, n, __ATOMIC_ACQ_REL); }
  T sub(T n) noexcept { return __atomic_fetch_sub(&value_, n, __ATOMIC_ACQ_REL); }

 private:
  T value_;
};

// Holds `mutex` for its scope.
class ScopedLock {
 public:
  explicit ScopedLock(pthread_mutex_t& mutex) noexcept : mutex_(mutex) { ::pthread_mutex_lock(&mutex_); }
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;
  ~ScopedLock() { ::pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace dlbridge
