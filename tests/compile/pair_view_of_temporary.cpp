// expect: deleted function|deleted constructor
#include "dlbridge/tensor_view.h"

dlbridge::Tensor make();
float sum(dlbridge::TensorView<const float, 1> v);

float use() {
#ifdef DLBRIDGE_MUST_FAIL
  return sum(make());
#else
  dlbridge::Tensor t = make();
  return sum(t);
#endif
}
