// expect: no dtype is known for this element type, a pointer. Name what it points to
#include "dlbridge/check.h"

bool fits(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return dlbridge::meets<float*, dlbridge::rank<2>>(t);
#else
  return dlbridge::meets<float, dlbridge::rank<2>>(t);
#endif
}
