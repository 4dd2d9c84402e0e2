#include "ndarray/kernels/random/multinomial.h"

#include <algorithm>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/philox_lanes.h"

namespace dlbridge::nd::host_kernels {
namespace {

DLBRIDGE_ND_CLONES int count_beyond(const std::int64_t* numbers, int n, std::int64_t sum) {
  std::int64_t beyond = 0;
  for (int i = 0; i < n; ++i) beyond += numbers[i] >= sum ? 1 : 0;
  return static_cast<int>(beyond);
}

// The numbers of some rows at a time, made as the other random numbers are.
template <int kMost>
void fill(const philox::FewTrials<kMost>& law, const MultinomialArgs& args) {
  constexpr int kNumbers = 2 * kLanes;
  const int rows_together = kNumbers / law.trials & ~1;  // even: a counter makes two numbers
  std::int64_t sums[kMost - 1], numbers[kNumbers];
  law.make_sums(sums);
  Lanes lanes;
  for (std::int64_t first = 0; first < args.rows; first += rows_together) {
    generate(law.keys, law.offset + static_cast<std::uint64_t>(first * law.trials / 2), lanes);
    for (int i = 0; i < kNumbers; ++i)
      numbers[i] = static_cast<std::int64_t>(philox::word64(lanes.block(i / 2), i % 2) >> 11);
    const std::int64_t rows = std::min<std::int64_t>(rows_together, args.rows - first);
    for (std::int64_t row = 0; row < rows; ++row) {
      int beyond[kMost - 1] = {};
      for (int k = 0; k < law.outcomes - 1; ++k)
        beyond[k] = count_beyond(numbers + row * law.trials, law.trials, sums[k]);
      law.store(beyond, args.out + (first + row) * args.outcomes);
    }
  }
}

void fill(const philox::BinomialRows& law, const MultinomialArgs& args) {
  for (std::int64_t row = 0; row < args.rows; ++row) law(row, args.out + row * args.outcomes);
}

}  // namespace

int multinomial(const MultinomialArgs& args) {
  return philox::visit_multinomial(args, [&](const auto& law) {
    fill(law, args);
    return 0;
  });
}

}  // namespace dlbridge::nd::host_kernels
