// expect: takes one index for each axis
#include "dlbridge/tensor_view.h"

float corner(dlbridge::TensorView<float, 2> v) {
#ifdef DLBRIDGE_MUST_FAIL
  return v(0);
#else
  return v(0, 0);
#endif
}
