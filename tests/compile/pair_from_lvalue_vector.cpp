// expect: from\(lvalue container\)
#include "dlbridge/converters/std.h"

dlbridge::Tensor take(std::vector<float>& v) {
#ifdef DLBRIDGE_MUST_FAIL
  return dlbridge::from(v);
#else
  return dlbridge::from(std::move(v));
#endif
}
