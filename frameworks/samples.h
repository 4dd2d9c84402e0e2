// Learning from samples where another library's objects keep their members: no place is assumed, and one counts only
// where no other explains the samples too.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "dlbridge/atomic.h"
#include "protocols/common/errors.h"
#include "protocols/common/python.h"

namespace dlbridge::frameworks {

// The one index of [first, last) for which `holds`; nothing where there is none or more than one.
template <class Predicate>
std::optional<std::size_t> only_word(std::size_t first, std::size_t last, Predicate holds) {
  std::optional<std::size_t> found;
  for (std::size_t i = first; i < last; ++i) {
    if (!holds(i)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

// False with DLBRIDGE_LEARNED_LAYOUTS=0, which is read once: then no layout is learned, here or anywhere else, and the
// other libraries' own interfaces do all the work.
inline bool may_learn() noexcept {
  static const bool may = [] {
    const char* value = std::getenv("DLBRIDGE_LEARNED_LAYOUTS");
    return value == nullptr || std::strcmp(value, "0") != 0;
  }();
  return may;
}

// What `learn` returns; false where it throws. Leaves the Python error of before, and none of its own.
template <class Learn>
bool learn_quietly(Learn learn) noexcept {
  if (!may_learn()) return false;
  const py::ErrorGuard guard;
  bool learned = false;
  try {
    learned = learn();
  } catch (...) {
    py::raise_current_exception();
  }
  PyErr_Clear();
  return learned;
}

// Learns at the first calls only, and in one thread at a time: the others do without meanwhile.
class Learner {
 public:
  constexpr explicit Learner(int attempts) noexcept : attempts_left_(attempts) {}

  // Whether `learn`, a function that learn_quietly() takes, has learned something by now.
  template <class Learn>
  bool ready(Learn learn) noexcept {
    if (!ready_ && attempts_left_ > 0) [[unlikely]]
      attempt(learn);
    return ready_;
  }

 private:
  template <class Learn>
  [[gnu::cold, gnu::noinline]] void attempt(Learn learn) noexcept {
    bool is_busy = false;
    if (!busy_.replace(is_busy, true)) return;
    if (!ready_) {
      attempts_left_.sub(1);
      ready_.store(learn_quietly(learn));
    }
    busy_.store(false);
  }

  Atomic<int> attempts_left_;
  Atomic<bool> busy_;
  Atomic<bool> ready_;  // what is learned is written before, and constant from then on
};

// Null in, null out: a chain of calls is checked at its end.
inline py::Ref attribute(PyObject* object, const char* name) {
  return py::Ref(object != nullptr ? PyObject_GetAttrString(object, name) : nullptr);
}

}  // namespace dlbridge::frameworks
