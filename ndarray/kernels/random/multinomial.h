// Rows of a multinomial distribution: how often each outcome was.
//
// Few trials of few outcomes, the same in all rows, are drawn one by one: trial i of row r takes the number of place
// r * trials + i of a call of uniform float64. Else a row takes one counter, and outcome k a binomial variate of what
// the outcomes before it left, whose first try has the high half k * 2^32.
#pragma once

#include "ndarray/kernels/random/binomial.h"

namespace dlbridge::nd::philox {

inline constexpr int kFewTrials = 32;  // of which drawing each one is faster than binomial variates
inline constexpr int kFewOutcomes = 8;

inline bool trial_by_trial(const MultinomialArgs& args) noexcept {
  return args.trials_of_rows == nullptr && args.chances_step == 0 && args.trials >= 1 && args.trials <= kFewTrials &&
         args.outcomes <= kFewOutcomes;
}

inline std::uint64_t counters_used(const MultinomialArgs& args) noexcept {
  const auto rows = static_cast<std::uint64_t>(args.rows);
  return trial_by_trial(args) ? (rows * static_cast<std::uint64_t>(args.trials) + 1) / 2 : rows;
}

// kMost: no more outcomes.
template <int kMost>
struct FewTrials {
  Keys keys;
  std::uint64_t offset;
  const double* chances;
  int trials, outcomes;

  static FewTrials make(const MultinomialArgs& args) noexcept {
    return {make_keys(args.seed), args.offset, args.chances, static_cast<int>(args.trials),
            static_cast<int>(args.outcomes)};
  }
  // The sums of the probabilities as integers of the 53 bits that a number has; none is beyond the last outcome's.
  DLBRIDGE_ND_HD void make_sums(std::int64_t (&sums)[kMost - 1]) const noexcept {
    double sum = 0;
    for (int k = 0; k < kMost - 1; ++k) {
      if (k < outcomes - 1) sum += chances[k];
      const bool within = k < outcomes - 1 && sum < 1;
      sums[k] = within ? static_cast<std::int64_t>(ceil((sum > 0 ? sum : 0) * 0x1p53)) : std::int64_t{1} << 53;
    }
  }
  // beyond[k]: of how many trials the number is not below the sum k.
  DLBRIDGE_ND_HD void store(const int (&beyond)[kMost - 1], std::int64_t* counts) const noexcept {
    int before = trials;
    for (int k = 0; k < kMost; ++k) {
      const int after = k < kMost - 1 ? beyond[k] : 0;  // none is beyond what is no sum
      if (k < outcomes) counts[k] = before - after;
      before = after;
    }
  }
  DLBRIDGE_ND_HD void operator()(std::int64_t row, std::int64_t* counts) const noexcept {
    std::int64_t sums[kMost - 1];
    make_sums(sums);
    int beyond[kMost - 1] = {};
    std::uint64_t place = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(trials);
    Block block = generate(keys, offset + place / 2);
    for (int i = 0; i < trials; ++i, ++place) {
      if (i > 0 && place % 2 == 0) block = generate(keys, offset + place / 2);
      const std::uint64_t word = place % 2 == 0 ? word64(block, 0) : word64(block, 1);
      for (int k = 0; k < kMost - 1; ++k) beyond[k] += static_cast<std::int64_t>(word >> 11) >= sums[k] ? 1 : 0;
    }
    store(beyond, counts);
  }
};

struct BinomialRows {
  MultinomialArgs args;
  Keys keys;

  static BinomialRows make(const MultinomialArgs& args) noexcept { return {args, make_keys(args.seed)}; }
  DLBRIDGE_ND_HD void operator()(std::int64_t row, std::int64_t* counts) const noexcept {
    const double* const chances = args.chances + row * args.chances_step;
    const std::uint64_t counter = args.offset + static_cast<std::uint64_t>(row);
    double left = args.trials_of_rows == nullptr ? args.trials : args.trials_of_rows[row], missing = 1;
    left = left >= 0 && left <= 0x1p62 ? floor(left) : 0;
    for (std::int64_t k = 0; k + 1 < args.outcomes; ++k) {
      const double chance = chances[k], part = missing > 0 ? chance / missing : 0;
      const std::uint64_t high = static_cast<std::uint64_t>(k) << 32;
      double count = 0;
      if (left > 0)
        count = Binomial::of(left, part < 1 ? part : 1).draw(generate(keys, counter, high), keys, counter, high);
      counts[k] = static_cast<std::int64_t>(count);
      left -= count;
      missing -= chance;
    }
    counts[args.outcomes - 1] = static_cast<std::int64_t>(left);
  }
};

// Calls f(rows), the functor that fills a row.
template <class F>
int visit_multinomial(const MultinomialArgs& args, F&& f) {
  if (!trial_by_trial(args)) return f(BinomialRows::make(args));
  return args.outcomes <= 4 ? f(FewTrials<4>::make(args)) : f(FewTrials<kFewOutcomes>::make(args));
}

}  // namespace dlbridge::nd::philox
