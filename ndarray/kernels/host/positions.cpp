#include "ndarray/kernels/host/positions.h"

#include <array>
#include <cstring>

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/functors/index_plan.h"
#include "ndarray/kernels/host/count_tables.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd::host_kernels {
namespace {

bool exists(std::int64_t i, std::int64_t extent) noexcept {
  return static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(extent);
}

// Calls f with a value of as many bytes.
template <class F>
void with_element(std::int64_t itemsize, F f) noexcept {
  struct Wide {
    std::uint64_t parts[2];
  };
  switch (itemsize) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    case 4: return f(std::uint32_t());
    case 8: return f(std::uint64_t());
    default: return f(Wide());
  }
}

template <class T>
T element_at(const void* data, std::int64_t i) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void set_element(void* data, std::int64_t i, T value) noexcept {
  std::memcpy(static_cast<char*>(data) + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

bool ravel_positions(std::span<const AxisPositions> axes, std::int64_t n, std::int64_t* out) noexcept {
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const auto [positions, extent, bounds] = axes[axis];
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t position = positions[i];
      if (bounds == Bounds::kRefuse) wrong |= static_cast<std::int64_t>(!exists(position, extent));
      else position = resolve_index(position, extent, bounds);
      // Without overflow, also of a position that is refused behind the loop.
      const auto before = axis == 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(out[i]);
      out[i] =
          static_cast<std::int64_t>(before * static_cast<std::uint64_t>(extent) + static_cast<std::uint64_t>(position));
    }
    if (wrong != 0) return false;
  }
  return true;
}

bool unravel_positions(const std::int64_t* places, std::int64_t n, std::span<const std::int64_t> extents,
                       std::span<std::int64_t* const> parts) noexcept {
  std::uint64_t size = 1;
  std::array<Divider64, kLoopDims> dividers;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    size *= static_cast<std::uint64_t>(extents[axis]);
    dividers[axis] = Divider64::of(extents[axis]);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    auto rest = static_cast<std::uint64_t>(places[i]);
    if (rest >= size) return false;
    for (std::size_t axis = extents.size(); --axis > 0;)
      parts[axis][i] = static_cast<std::int64_t>(dividers[axis].split(rest));
    parts[0][i] = static_cast<std::int64_t>(rest);
  }
  return true;
}

namespace {
template <class T>
std::optional<bool> numbers_fall(const T* x, std::int64_t n) noexcept {
  const auto number = [&](std::int64_t i) {  // of bools by their bytes, of which all that are not 0 are true
    const T value = cast<T>(element_at<stored_t<T>>(x, i));
    return load(&value);
  };
  std::int64_t first = 0;
  while (first + 1 < n && number(first) == number(first + 1)) ++first;
  if (first + 1 >= n) return false;
  const bool rises = number(first) < number(first + 1);
  for (std::int64_t i = first; i + 1 < n; ++i)
    if (rises ? number(i) > number(i + 1) : number(i) < number(i + 1)) return std::nullopt;
  return !rises;
}
}  // namespace

std::optional<bool> falls(DType dtype, const void* x, std::int64_t n) noexcept {
  return visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() -> std::optional<bool> {
        if constexpr (is_complex_v<T>) return std::nullopt;
        else return numbers_fall(static_cast<const T*>(x), n);
      },
      std::optional<bool>());
}

DLBRIDGE_ND_CLONES Extremes find_extremes(const std::int64_t* x, std::int64_t n) noexcept {
  Extremes found{x[0], x[0]};
  for (std::int64_t i = 1; i < n; ++i) {
    const std::int64_t value = x[i];
    found.low = value < found.low ? value : found.low;
    found.high = value > found.high ? value : found.high;
  }
  return found;
}

void count_values(const std::int64_t* x, std::int64_t n, std::int64_t* counts, std::int64_t size) noexcept {
  constexpr std::int64_t kFewCounts = 256;
  constexpr int kTables = 4;
  const auto count = [=](std::int64_t i, std::int64_t* table) {
    if (const std::int64_t value = x[i]; exists(value, size)) ++table[value];
  };
  if (size <= kFewCounts && n >= kTables * size) {
    std::int64_t others[(kTables - 1) * table_step(kFewCounts)]{};
    return count_in_tables<kTables>(n, size, counts, others, count);
  }
  for (std::int64_t i = 0; i < n; ++i) count(i, counts);
}

void sum_weights(const std::int64_t* x, const double* weights, std::int64_t n, double* totals,
                 std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < n; ++i)
    if (const std::int64_t value = x[i]; exists(value, size)) totals[value] += weights[i];
}

namespace {
template <class T>
DLBRIDGE_ND_CLONES void blend(void* x, const std::uint8_t* mask, const void* values, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const T before = element_at<T>(x, i), after = element_at<T>(values, i);
    set_element(x, i, mask[i] != 0 ? after : before);
  }
}
}  // namespace

void put_masked(void* x, const std::uint8_t* mask, const void* values, std::int64_t n, std::int64_t itemsize) noexcept {
  with_element(itemsize, [&]<class T>(T) { blend<T>(x, mask, values, n); });
}

void place(void* x, const std::uint8_t* mask, std::int64_t n, const void* values, std::int64_t count,
           std::int64_t itemsize) noexcept {
  with_element(itemsize, [&]<class T>(T) {
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (mask[i] == 0) continue;
      set_element(x, i, element_at<T>(values, next));
      if (++next == count) next = 0;
    }
  });
}

bool choose(const std::int64_t* numbers, std::int64_t n, std::span<const void* const> choices, std::int64_t itemsize,
            void* out) noexcept {
  bool found = true;
  with_element(itemsize, [&]<class T>(T) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t number = numbers[i];
      if (!exists(number, static_cast<std::int64_t>(choices.size()))) {
        found = false;
        return;
      }
      set_element(out, i, element_at<T>(choices[static_cast<std::size_t>(number)], i));
    }
  });
  return found;
}

namespace {
template <class T>
DLBRIDGE_ND_CLONES void choose_of_two(const std::uint8_t* mask, std::int64_t n, const void* first, const void* second,
                                      void* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const T one = element_at<T>(first, i), other = element_at<T>(second, i);
    set_element(out, i, mask[i] != 0 ? other : one);
  }
}
}  // namespace

void choose(const std::uint8_t* mask, std::int64_t n, std::span<const void* const> choices, std::int64_t itemsize,
            void* out) noexcept {
  with_element(itemsize, [&]<class T>(T) { choose_of_two<T>(mask, n, choices[0], choices[1], out); });
}

}  // namespace dlbridge::nd::host_kernels
