// Distributions of a formula of one or two random numbers on the host, in one pass over memory: the formulas of
// python/dlbridge/nd/_distributions.py and _counts.py, for parameters that are numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::host_kernels {

// Uniform numbers below 1, or normal and exponential ones of scale 1.
void draw_floats(Distribution distribution, std::uint64_t seed, std::uint64_t offset, std::int64_t n,
                 double* out) noexcept;

// A uniform number, both logarithms of which are finite.
inline double inner_unit(double u) noexcept { return std::min(std::max(u, 0x1p-54), 1 - 0x1p-53); }

enum class Formula { kTriangular, kWald, kGeometric, kLogseries };

constexpr bool gives_counts(Formula formula) noexcept { return formula >= Formula::kGeometric; }

// The parameters: left, mode, right; mean, scale; log1p(-p); p, log1p(-p).
struct FormulaArgs {
  Formula formula;
  double parameters[3];
  std::uint64_t seed, offset;
  std::int64_t n;
  void* out;  // float64, or int64 of counts
};
void draw_formula(const FormulaArgs& args) noexcept;

constexpr bool takes_two(Formula formula) noexcept {
  return formula == Formula::kWald || formula == Formula::kLogseries;
}
// How many counters n numbers use.
constexpr std::uint64_t counters_of(Formula formula, std::int64_t n) noexcept {
  const std::uint64_t each = (static_cast<std::uint64_t>(n) + 1) / 2;
  return takes_two(formula) ? 2 * each : each;
}

}  // namespace dlbridge::nd::host_kernels
