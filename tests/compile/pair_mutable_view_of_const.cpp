// expect: a const Tensor gives views of const elements only
#include "dlbridge/tensor_view.h"

float first(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return t.view<float, 1>()(0);
#else
  return t.view<const float, 1>()(0);
#endif
}
