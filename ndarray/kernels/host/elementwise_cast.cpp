// Casts between any two dtypes. Integers of one width share a loop as source or target where the sign cannot matter.
#include <algorithm>
#include <cstring>

#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <class From, class To>
DLBRIDGE_ND_CLONES void run_cast(char* const* data, const std::int64_t* strides, std::int64_t n) {
  const auto convert = [](From x) { return cast<To>(x); };
  map_loop<true, To, From>(data, strides, n, convert, std::make_index_sequence<1>{});
}

constexpr std::int64_t kRepeatedBytes = 4096;

// The same dtype: what lies side by side is moved, and a repeated element is written once for the C library to repeat.
template <class T>
void run_copy(char* const* data, const std::int64_t* strides, std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(T), kRepeated = kRepeatedBytes / kSize;
  const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count * kSize); };
  if (strides[0] != kSize || (strides[1] != kSize && strides[1] != 0)) return run_cast<T, T>(data, strides, n);
  if (strides[1] == kSize) return static_cast<void>(std::memmove(data[0], data[1], bytes(n)));
  const std::int64_t first = std::min(n, kRepeated);
  run_cast<T, T>(data, strides, first);
  for (std::int64_t i = first; i < n; i += kRepeated)
    std::memcpy(data[0] + i * kSize, data[0], bytes(std::min(kRepeated, n - i)));
}

struct CastTable {
  InnerLoop loops[kDTypeSlots][kDTypeSlots];
};

template <DType from, std::size_t... to>
constexpr void fill_row(InnerLoop* row, std::index_sequence<to...>) {
  (
      [&] {
        constexpr DType target = static_cast<DType>(to);
        if constexpr (contains(kAllSet, from) && contains(kAllSet, target)) {
          if constexpr (from == target) row[to] = &run_copy<type_of_t<carrier_of(from)>>;
          else row[to] = &run_cast<type_of_t<cast_source(from, target)>, type_of_t<cast_target(from, target)>>;
        }
      }(),
      ...);
}

template <std::size_t... from>
constexpr CastTable make_cast_table(std::index_sequence<from...> dtypes) {
  CastTable table{};
  (fill_row<static_cast<DType>(from)>(table.loops[from], dtypes), ...);
  return table;
}

constexpr CastTable kCasts = make_cast_table(std::make_index_sequence<kDTypeSlots>{});

}  // namespace

InnerLoop cast_loop(DType from, DType to) noexcept {
  return kCasts.loops[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

}  // namespace dlbridge::nd::host_kernels
