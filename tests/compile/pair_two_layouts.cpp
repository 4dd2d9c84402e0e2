// expect: no layout meets all of them
#include "dlbridge/check.h"

bool fits(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return !dlbridge::check<const float, dlbridge::c_contig, dlbridge::f_contig>(t);
#else
  return !dlbridge::check<const float, dlbridge::any_layout, dlbridge::f_contig>(t);
#endif
}
