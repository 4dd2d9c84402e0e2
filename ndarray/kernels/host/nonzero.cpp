// Positions of the true elements, eight bytes of the mask at a time.
#include <cstdint>
#include <cstring>

#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::host_kernels {

int nonzero(const NonzeroArgs& args) {
  const auto* mask = static_cast<const unsigned char*>(args.mask);
  std::int64_t found = 0;
  const auto visit = [&](std::int64_t i) {
    if (mask[i] == 0) return;
    if (args.positions != nullptr) args.positions[found] = i;
    ++found;
  };
  std::int64_t i = 0;
  for (; i + 8 <= args.n; i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, mask + i, sizeof eight);
    if (eight == 0) continue;
    for (std::int64_t j = i; j < i + 8; ++j) visit(j);
  }
  for (; i < args.n; ++i) visit(i);
  *args.count = found;
  return 0;
}

}  // namespace dlbridge::nd::host_kernels
