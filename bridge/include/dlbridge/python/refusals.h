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

// Each refusal on a line behind `heading`, the closest of them so named.
[[gnu::cold, gnu::noinline]] inline std::string refusal_lines(std::string heading, const std::vector<Refusal>& all) {
  std::string lines = std::move(heading);
  for (const Refusal& one : all) {
    bool closest = true;
    for (const Refusal& other : all) closest = closest && (&one == &other || one.closer_than(other));
    lines += closest ? "\n    closest: " : "\n    ";
    lines += one.text;
  }
  return lines;
}
inline std::string refusals_text(const std::string& callable, const std::vector<Refusal>& all) {
  return refusal_lines(joined({callable, ": no overload takes these arguments:"}), all);
}

// What the alternatives of a std::variant have said of one object, each once.
struct Alternatives {
  std::vector<Refusal> all;

  void add(const std::string& reason, int distance) {
    for (const Refusal& one : all)
      if (one.text == reason) return;
    all.push_back({reason, 0, distance});
  }
  std::string text() const { return refusal_lines("none of the alternatives takes this:", all); }
};

}  // namespace dlbridge::detail
