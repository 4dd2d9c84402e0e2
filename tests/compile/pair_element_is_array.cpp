// expect: no dtype is known for this element type, an array. Name its elements
#include "dlbridge/check.h"

bool fits(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return dlbridge::meets<float[3], dlbridge::rank<1>>(t);
#else
  return dlbridge::meets<float, dlbridge::shape<dlbridge::dyn, 3>>(t);
#endif
}
