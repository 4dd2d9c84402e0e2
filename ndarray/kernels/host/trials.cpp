#include "ndarray/kernels/host/trials.h"

#include <algorithm>

#include "ndarray/kernels/host/formulas.h"

namespace dlbridge::nd::host_kernels {

void count_trials(const TrialsArgs& args) noexcept {
  constexpr std::int64_t kNumbers = 2 * kMostTrials;
  double numbers[kNumbers];
  const std::int64_t step = kNumbers / args.trials & ~std::int64_t{1};  // even: a counter makes two numbers
  for (std::int64_t first = 0; first < args.rows; first += step) {
    const std::int64_t rows = std::min(step, args.rows - first);
    draw_floats(Distribution::kUniform, args.seed, args.offset + static_cast<std::uint64_t>(first * args.trials / 2),
                rows * args.trials, numbers);
    for (std::int64_t row = 0; row < rows; ++row) {
      const double* const of_row = numbers + row * args.trials;
      std::int64_t* const counts = args.counts + (first + row) * args.outcomes;
      std::int64_t above = args.trials;
      for (std::int64_t k = 0; k < args.outcomes - 1; ++k) {
        std::int64_t beyond = 0;
        for (std::int64_t i = 0; i < args.trials; ++i) beyond += of_row[i] >= args.sums[k] ? 1 : 0;
        counts[k] = above - beyond;
        above = beyond;
      }
      counts[args.outcomes - 1] = above;
    }
  }
}

}  // namespace dlbridge::nd::host_kernels
