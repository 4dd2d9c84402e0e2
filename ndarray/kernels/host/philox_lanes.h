// Philox's blocks many at a time on the host.
#pragma once

#include <cstdint>

#include "ndarray/kernels/host/vector_math.h"
#include "ndarray/kernels/random/philox.h"

namespace dlbridge::nd::host_kernels {

inline constexpr int kLanes = kBlock;  // blocks made at a time

struct Lanes {
  std::uint32_t x[4][kLanes];  // word k of each lies together, so that loops over them vectorise

  philox::Block block(int i) const noexcept { return {{x[0][i], x[1][i], x[2][i], x[3][i]}}; }
};

// Ways to make them that this processor has, the fastest first; all give the same blocks.
using Generate = void (*)(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) noexcept;
struct Generators {
  Generate ways[3];
  int count = 0;
};
Generators find_generators() noexcept;

// The blocks of the counters from `counter` on, with the high half 0.
void generate(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) noexcept;

}  // namespace dlbridge::nd::host_kernels
