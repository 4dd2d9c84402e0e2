// expect: no device meets all of them
#include "dlbridge/check.h"

bool fits(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return !dlbridge::check<const float, dlbridge::on_host, dlbridge::on_cuda>(t);
#else
  return !dlbridge::check<const float, dlbridge::on_host, dlbridge::on_cpu>(t);
#endif
}
