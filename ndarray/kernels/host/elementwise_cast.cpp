// Casts between any two dtypes. Integers of one width share a loop as source or target where the sign cannot matter.
#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <class From, class To>
void run_cast(char* const* data, const std::int64_t* strides, std::int64_t n) {
  const auto convert = [](From x) { return cast<To>(x); };
  map_loop<true, To, From>(data, strides, n, convert, std::make_index_sequence<1>{});
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
          if constexpr (from == target) row[to] = &run_cast<type_of_t<carrier_of(from)>, type_of_t<carrier_of(from)>>;
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
