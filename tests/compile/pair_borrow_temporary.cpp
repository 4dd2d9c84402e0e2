// expect: borrow\(temporary\)
#include "dlbridge/converters/std.h"

dlbridge::Tensor lend(std::vector<float>& v) {
#ifdef DLBRIDGE_MUST_FAIL
  return dlbridge::from(dlbridge::borrow(std::vector<float>(v), dlbridge::unowned));
#else
  return dlbridge::from(dlbridge::borrow(v, dlbridge::unowned));
#endif
}
