// expect: a view is of one element type: any_of
#include "dlbridge/tensor_view.h"

using namespace dlbridge;

const void* first(Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return t.view<const any_of<float, double>, 1>().data();
#else
  return t.view<const float, 1>().data();
#endif
}
