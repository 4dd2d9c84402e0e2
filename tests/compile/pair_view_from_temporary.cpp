// expect: a temporary gives no view
#include "dlbridge/tensor_view.h"

dlbridge::Tensor make();

float first() {
#ifdef DLBRIDGE_MUST_FAIL
  const auto v = make().view<float, 1>();  // its memory ends with the statement
#else
  dlbridge::Tensor t = make();
  const auto v = t.view<float, 1>();
#endif
  return v(0);
}
