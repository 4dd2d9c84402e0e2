// expect: could not convert|no matching function
#include "dlbridge/tensor_view.h"

void fill(dlbridge::TensorView<float, 1> v);

void use(dlbridge::TensorView<const float, 1> reads, dlbridge::TensorView<float, 1> writes) {
#ifdef DLBRIDGE_MUST_FAIL
  fill(reads);
#else
  fill(writes);
#endif
  static_cast<void>(reads);
  static_cast<void>(writes);
}
