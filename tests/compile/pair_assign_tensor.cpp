// expect: deleted function|deleted operator
#include "dlbridge/tensor.h"

void replace(dlbridge::Tensor& target, dlbridge::Tensor& source) {
#ifdef DLBRIDGE_MUST_FAIL
  target = source;
#else
  target = std::move(source);
#endif
}
