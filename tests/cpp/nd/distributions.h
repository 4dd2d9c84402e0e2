// What the tests of the random kernels draw from, on the host and on a device.
#pragma once

#include <vector>

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::testing {

// All that give floats, or all that give counts.
inline std::vector<Distribution> distributions(bool of_counts) {
  std::vector<Distribution> found;
  for (int number = 0; number <= static_cast<int>(Distribution::kHypergeometric); ++number) {
    const auto distribution = static_cast<Distribution>(number);
    if (distribution != Distribution::kInteger && gives_counts(distribution) == of_counts)
      found.push_back(distribution);
  }
  return found;
}

}  // namespace dlbridge::nd::testing
