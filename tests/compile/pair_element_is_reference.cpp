// expect: no dtype is known for this element type, a reference. Leave out the &
#include "dlbridge/check.h"

bool fits(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return dlbridge::meets<const float&, dlbridge::rank<2>>(t);
#else
  return dlbridge::meets<const float, dlbridge::rank<2>>(t);
#endif
}
