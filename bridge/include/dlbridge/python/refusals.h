// What several overloads have said of the arguments of one call.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlbridge::detail {

// One after another. Whatever is only said once in a while is put together here: of each operator+ compilers make code
// of its own.
[[gnu::cold, gnu::noinline]] inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) out += part;
  return out;
}

// Of one overload.
struct Refusal {
  std::string text;                       // "argument 'a': expected …"
  std::size_t index = 0;                  // of the argument: those before it were taken
  int distance = kFarthest;               // of the array from what the argument wants
  static constexpr int kFarthest = 1000;  // it is no array at all

  bool closer_than(const Refusal& other) const noexcept {
    return index != other.index ? index > other.index : distance < other.distance;
  }
};

// Collected while a binding library asks one overload after the other; `call` is whatever tells calls apart.
struct [[gnu::visibility("hidden")]] Refusals {
  const void* call = nullptr;
  std::vector<Refusal> all;

  void begin(const void* of) {
    call = of;
    all.clear();
  }
};
[[gnu::visibility("hidden"), gnu::noinline]] inline Refusals& refusals() {
  thread_local Refusals of_this_thread;
  return of_this_thread;
}

// "blur(): no overload takes these arguments:", each refusal on a line, the closest of them so named.
[[gnu::cold, gnu::noinline]] inline std::string refusals_text(const std::string& callable,
                                                              const std::vector<Refusal>& all) {
  std::string lines = joined({callable, ": no overload takes these arguments:"});
  for (const Refusal& one : all) {
    bool closest = true;
    for (const Refusal& other : all) closest = closest && (&one == &other || one.closer_than(other));
    lines += closest ? "\n    closest: " : "\n    ";
    lines += one.text;
  }
  return lines;
}

}  // namespace dlbridge::detail
