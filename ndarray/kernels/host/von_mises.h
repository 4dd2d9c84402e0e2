// Angles of the von Mises distribution on the host, by rejection: the steps of _of_best_and_fisher() in
// python/dlbridge/nd/_distributions.py, a few hundred angles at a time.
#pragma once

#include <cstdint>

namespace dlbridge::nd::host_kernels {

// False: there is no memory. In [-pi, pi], around mu; kappa is above 0.
bool draw_angles(double mu, double kappa, std::uint64_t seed, std::int64_t n, double* out) noexcept;

}  // namespace dlbridge::nd::host_kernels
