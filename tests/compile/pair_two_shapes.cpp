// expect: two of them ask for different extents
#include "dlbridge/check.h"

using dlbridge::dyn;

bool fits(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return !dlbridge::check<const float, dlbridge::shape<dyn, 3>, dlbridge::shape<dyn, 4>>(t);
#else
  return !dlbridge::check<const float, dlbridge::shape<dyn, dyn>, dlbridge::shape<dyn, 4>>(t);
#endif
}
