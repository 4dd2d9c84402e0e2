// Piecewise linear functions on the host, where a kernel of its own spares some twenty passes over memory.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// out[i]: the function through (knots[k], values[k]), knots increasing, n > 0 of them, at at[i]; `left` and `right` of
// them, and NaN at NaN. All dense; `out` is none of the others.
struct InterpolateArgs {
  const double* knots;
  const double* values;
  std::int64_t n;
  const double* at;
  std::int64_t count;
  double left, right;
  double* out;
};
void interpolate(const InterpolateArgs& args) noexcept;

}  // namespace dlbridge::nd::host_kernels
