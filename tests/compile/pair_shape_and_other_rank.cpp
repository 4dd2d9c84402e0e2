// expect: no rank meets all of shape<...>
#include "dlbridge/check.h"

bool fits(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return !dlbridge::check<const float, dlbridge::shape<dlbridge::dyn, 3>, dlbridge::rank<4>>(t);
#else
  return !dlbridge::check<const float, dlbridge::shape<dlbridge::dyn, 3>, dlbridge::rank<2>>(t);
#endif
}
