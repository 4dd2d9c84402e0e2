// Floats taken apart and put together, in one pass. As in positions.h, `done` is false where the general way is to be
// taken: for arrays of another dtype, and where it is not said otherwise for such as are not dense or not on the host.
#pragma once

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// Mantissas and exponents (int32), or fractions and wholes; on any device, of floats that lie in any way.
Status split_exponents(const Tensor& x, Tensor (&parts)[2], bool& done);
Status split_wholes(const Tensor& x, Tensor (&parts)[2], bool& done);
// The distance to the next number away from zero.
Status find_spacings(const Tensor& x, Tensor& out, bool& done);
// x * 2^exponents, which are integers; on a device, too, where they lie in any way.
Status scale_by_powers(const Tensor& x, const Tensor& exponents, Tensor& out, bool& done);
// On any device, of floats and complex numbers that lie in any way: NaN and the infinities by numbers, in each part by
// itself; a number for what is NaN in a part; the parts as multiples of `scale`, or with `inverse` of 1 / scale.
Status replace_specials(const Tensor& x, double nan, double high, double low, Tensor& out, bool& done);
Status replace_nan(const Tensor& x, double number, Tensor& out, bool& done);
Status round_at(const Tensor& x, double scale, bool inverse, Tensor& out, bool& done);

}  // namespace dlbridge::nd
