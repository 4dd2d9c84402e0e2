// expect: a temporary gives no view
#include <utility>

#include "dlbridge/tensor_view.h"

float first(const dlbridge::Tensor t) {
#ifdef DLBRIDGE_MUST_FAIL
  const auto v = std::move(t).view<const float, 1>();
#else
  const auto v = t.view<const float, 1>();
#endif
  return v(0);
}
