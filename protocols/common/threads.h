// What CPython without the GIL (3.13t, 3.14t) needs, at no cost to the builds that have one. docs/free_threading.md
// says which structure is kept by which of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dlbridge/atomic.h"
#include "protocols/common/python.h"

// A variable that each thread has of its own where there is no GIL, and the process once where it guards it.
#ifdef Py_GIL_DISABLED
#define DLBRIDGE_PER_THREAD constinit thread_local
#else
#define DLBRIDGE_PER_THREAD constinit
#endif

namespace dlbridge::py {

#ifdef Py_GIL_DISABLED
inline constexpr bool kFreeThreaded = true;
#else
inline constexpr bool kFreeThreaded = false;
#endif

// Holds the lock of an object, or of two, for its scope. A thread that waits for it stops no collector.
class CriticalSection {
 public:
#ifdef Py_GIL_DISABLED
  explicit CriticalSection(PyObject* object) noexcept { PyCriticalSection_Begin(&section_, object); }
  ~CriticalSection() {
    outlive_thread_exit([this] { PyCriticalSection_End(&section_); });
  }

 private:
  PyCriticalSection section_;
#else
  explicit CriticalSection(PyObject*) noexcept {}
  ~CriticalSection() {}  // NOLINT(modernize-use-equals-default): an object that is used
#endif
 public:
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;
};

// A lock for what is cold, under which Python code may run: no std::mutex, for a thread that waits for one keeps the
// collector waiting.
class Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexHold;
#ifdef Py_GIL_DISABLED
  PyMutex mutex_{};
#endif
};

class MutexHold {
 public:
#ifdef Py_GIL_DISABLED
  explicit MutexHold(Mutex& mutex) noexcept : mutex_(mutex) { PyMutex_Lock(&mutex_.mutex_); }
  ~MutexHold() { PyMutex_Unlock(&mutex_.mutex_); }

 private:
  Mutex& mutex_;
#else
  explicit MutexHold(Mutex&) noexcept {}
  ~MutexHold() {}  // NOLINT(modernize-use-equals-default): an object that is used
#endif
 public:
  MutexHold(const MutexHold&) = delete;
  MutexHold& operator=(const MutexHold&) = delete;
};

// A pointer to an object without a reference, for which the object itself answers until it takes itself away. Readers
// get a reference, or nothing where the object is about to die.
#ifdef Py_GIL_DISABLED
#if PY_VERSION_HEX >= 0x030E0000
inline void allow_revival(PyObject* object) noexcept { PyUnstable_EnableTryIncRef(object); }
inline bool revive_reference(PyObject* object) noexcept { return PyUnstable_TryIncRef(object) != 0; }
#else
// What CPython 3.14 exports, by the flags of CPython 3.13's own headers: an object with _Py_REF_MAYBE_WEAKREF is marked
// as merged before it dies, and from then on its shared count only falls.
inline void allow_revival(PyObject* object) noexcept {
  Py_ssize_t shared = __atomic_load_n(&object->ob_ref_shared, __ATOMIC_RELAXED);
  while ((shared & _Py_REF_SHARED_FLAG_MASK) == 0 &&
         !__atomic_compare_exchange_n(&object->ob_ref_shared, &shared, shared | _Py_REF_MAYBE_WEAKREF, false,
                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
}
inline bool revive_reference(PyObject* object) noexcept {
  if (__atomic_load_n(&object->ob_tid, __ATOMIC_RELAXED) == _Py_ThreadId()) {  // it cannot die in another thread
    Py_INCREF(object);
    return true;
  }
  Py_ssize_t shared = __atomic_load_n(&object->ob_ref_shared, __ATOMIC_RELAXED);
  do {
    if (shared == 0 || shared == _Py_REF_MERGED) return false;
  } while (!__atomic_compare_exchange_n(&object->ob_ref_shared, &shared,
                                        shared + (Py_ssize_t{1} << _Py_REF_SHARED_SHIFT), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
  return true;
}
#endif

class UncountedReference {
 public:
  // A new reference; null where there is no object, or none that lives on.
  static PyObject* get(void*& slot) noexcept {
    for (void* seen = __atomic_load_n(&slot, __ATOMIC_ACQUIRE); seen != nullptr;) {
      if (is_locked(seen)) {
        seen = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
      } else if (exchange(slot, seen, locked(seen))) {  // the object does not go before the slot is free
        auto* object = static_cast<PyObject*>(seen);
        const bool lives = revive_reference(object);
        __atomic_store_n(&slot, seen, __ATOMIC_RELEASE);
        return lives ? object : nullptr;
      }
    }
    return nullptr;
  }
  // Where nobody else is there.
  static void set(void*& slot, PyObject* object) noexcept {
    allow_revival(object);
    void* nobody = nullptr;
    exchange(slot, nobody, object);
  }
  static void remove(void*& slot, PyObject* object) noexcept {
    void* seen = object;
    while (!exchange(slot, seen, nullptr)) {
      if (seen != locked(object)) return;  // another object's
      seen = object;
    }
  }
  static bool is(void*& slot, PyObject* object) noexcept {
    void* seen = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
    return seen == object || seen == locked(object);
  }

 private:
  static void* locked(void* object) noexcept { return static_cast<char*>(object) + 1; }
  static bool is_locked(void* seen) noexcept { return reinterpret_cast<std::uintptr_t>(seen) % 2 != 0; }
  static bool exchange(void*& slot, void*& seen, void* value) noexcept {
    return __atomic_compare_exchange_n(&slot, &seen, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }
};
#else
class UncountedReference {
 public:
  static PyObject* get(void*& slot) noexcept { return Ref::borrow(static_cast<PyObject*>(slot)).release(); }
  static void set(void*& slot, PyObject* object) noexcept { slot = object; }
  static void remove(void*& slot, PyObject* object) noexcept {
    if (slot == object) slot = nullptr;
  }
  static bool is(void*& slot, PyObject* object) noexcept { return slot == object; }
};
#endif

// Borrowed, kept for good: what `find` (a new reference; null with a Python error set) gave first. Threads that look at
// the same time all find, and take what one of them found. A static local would do, if a thread that waits for its
// guard did not keep the collector waiting.
template <class Find>
PyObject* find_once(Atomic<PyObject*>& slot, Find find) {
  PyObject* found = slot.load();
  if (found != nullptr) [[likely]]
    return found;
  PyObject* const mine = find();
  if (mine == nullptr || slot.replace(found, mine)) return mine;
  drop(mine);
  return found;
}

// An interned string that is made on first use. Throws nothing: null with a Python error set.
class InternedName {
 public:
  constexpr explicit InternedName(const char* text) noexcept : text_(text) {}
  PyObject* get() noexcept {
    return find_once(name_, [this] { return PyUnicode_InternFromString(text_); });
  }

 private:
  const char* text_;
  Atomic<PyObject*> name_;
};

// Some words that are read together while another thread may replace them. Nobody waits: a reader that meets a writer
// finds nothing, a writer that meets another leaves its own words out. For what can be found out again.
template <class Value>
class SharedWords {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
#ifdef Py_GIL_DISABLED
  bool read(Value& out) const noexcept {
    const std::uintptr_t turn = turn_.load();
    if (turn % 2 != 0) return false;
    std::uintptr_t words[kWords];
    for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load();
    if (turn_.load() != turn) return false;
    std::memcpy(&out, words, sizeof(Value));
    return true;
  }
  // `old` is what was there before.
  bool replace(const Value& value, Value& old) noexcept {
    std::uintptr_t turn = turn_.load();
    if (turn % 2 != 0 || !turn_.replace(turn, turn + 1)) return false;
    std::uintptr_t words[kWords] = {}, before[kWords];
    std::memcpy(words, &value, sizeof(Value));
    for (std::size_t i = 0; i < kWords; ++i) {
      before[i] = words_[i].load();
      words_[i].store(words[i]);  // a release each: who sees one of them sees the odd turn, too
    }
    std::memcpy(&old, before, sizeof(Value));
    turn_.store(turn + 2);
    return true;
  }

 private:
  static constexpr std::size_t kWords = (sizeof(Value) + sizeof(std::uintptr_t) - 1) / sizeof(std::uintptr_t);
  Atomic<std::uintptr_t> turn_;  // odd while somebody writes
  Atomic<std::uintptr_t> words_[kWords];
#else
  bool read(Value& out) const noexcept {
    out = value_;
    return true;
  }
  bool replace(const Value& value, Value& old) noexcept {
    old = value_;
    value_ = value;
    return true;
  }

 private:
  Value value_{};
#endif
};

// A number that all threads count, and few read. Where there is no GIL a line belongs to the first thread that counts
// in it, which needs no atomic addition; the few that meet in the line of another add to its second number. A thread's
// id is given again only when the thread is gone.
class SharedCount {
 public:
#ifdef Py_GIL_DISABLED
  void add(Py_ssize_t n) noexcept {
    const std::uintptr_t thread = _Py_ThreadId();
    Line& line = lines_[(thread >> 12 ^ thread >> 23) % kLines];
    std::uintptr_t owner = __atomic_load_n(&line.owner, __ATOMIC_RELAXED);
    if (owner == thread || (owner == 0 && claim(line, owner, thread))) [[likely]] {
      __atomic_store_n(&line.own, __atomic_load_n(&line.own, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
    } else {
      __atomic_fetch_add(&line.others, n, __ATOMIC_RELAXED);
    }
  }
  Py_ssize_t total() const noexcept {
    Py_ssize_t sum = 0;
    for (const Line& line : lines_) {
      sum += __atomic_load_n(&line.own, __ATOMIC_RELAXED) + __atomic_load_n(&line.others, __ATOMIC_RELAXED);
    }
    return sum;
  }

 private:
  static constexpr std::size_t kLines = 16;
  struct alignas(64) Line {
    std::uintptr_t owner = 0;
    Py_ssize_t own = 0;
    Py_ssize_t others = 0;
  };
  static bool claim(Line& line, std::uintptr_t nobody, std::uintptr_t thread) noexcept {
    return __atomic_compare_exchange_n(&line.owner, &nobody, thread, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  Line lines_[kLines];
#else
  void add(Py_ssize_t n) noexcept { count_ += n; }
  Py_ssize_t total() const noexcept { return count_; }

 private:
  Py_ssize_t count_ = 0;
#endif
};

}  // namespace dlbridge::py
