// expect: from\(view\): a view owns nothing
#include <memory>

#include "dlbridge/converters/std.h"

dlbridge::Tensor lend(std::span<float> span, std::shared_ptr<float[]> keepalive) {
#ifdef DLBRIDGE_MUST_FAIL
  static_cast<void>(keepalive);
  return dlbridge::from(span);
#else
  return dlbridge::from(dlbridge::borrow(span, keepalive));
#endif
}
