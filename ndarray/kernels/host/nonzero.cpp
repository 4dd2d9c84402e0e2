// Positions of the true elements.
#include <cstdint>
#include <cstring>

#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kGroup = 16;  // elements that are passed over at once where none is true

bool is_any_true(const unsigned char* group) noexcept {
  std::uint64_t low, high;
  std::memcpy(&low, group, sizeof low);
  std::memcpy(&high, group + sizeof low, sizeof high);
  return (low | high) != 0;
}

std::int64_t count_true(const unsigned char* mask, std::int64_t n) noexcept {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < n; ++i) found += mask[i] != 0;
  return found;
}

// Each position is written, and counts where the element is true: a branch would be mispredicted at every second one
// of a random mask. There is room, for found <= i < n.
std::int64_t find_true(const unsigned char* mask, std::int64_t n, std::int64_t* positions) noexcept {
  std::int64_t found = 0, i = 0;
  const auto visit = [&](std::int64_t at) {
    positions[found] = at;
    found += mask[at] != 0;
  };
  for (; i + kGroup <= n; i += kGroup) {
    if (!is_any_true(mask + i)) continue;
    for (std::int64_t j = 0; j < kGroup; ++j) visit(i + j);
  }
  for (; i < n; ++i) visit(i);
  return found;
}

}  // namespace

int nonzero(const NonzeroArgs& args) {
  const auto* mask = static_cast<const unsigned char*>(args.mask);
  *args.count = args.positions == nullptr ? count_true(mask, args.n) : find_true(mask, args.n, args.positions);
  return 0;
}

}  // namespace dlbridge::nd::host_kernels
