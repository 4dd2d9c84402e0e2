// Floats taken apart and put together, in one pass. As in positions.h, `done` is false where the general way is to be
// taken: for arrays of another dtype, and but for the first two such as are not dense or not on the host.
#pragma once

#include <optional>

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// Mantissas and exponents (int32), or fractions and wholes; on any device, of floats that lie in any way.
Status split_exponents(const Tensor& x, Tensor (&parts)[2], bool& done);
Status split_wholes(const Tensor& x, Tensor (&parts)[2], bool& done);
// The distance to the next number away from zero.
Status find_spacings(const Tensor& x, Tensor& out, bool& done);
// x * 2^exponents, which are integers.
Status scale_by_powers(const Tensor& x, const Tensor& exponents, Tensor& out, bool& done);
// In place: NaN and the infinities by numbers, in both parts of complex ones; without one the infinities by the
// largest.
Status replace_specials(const Tensor& x, double nan, std::optional<double> high, std::optional<double> low, bool& done);

}  // namespace dlbridge::nd
