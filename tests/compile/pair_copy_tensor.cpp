// expect: deleted function|deleted constructor
#include "dlbridge/tensor.h"

dlbridge::Tensor pass_on(dlbridge::Tensor& tensor) {
#ifdef DLBRIDGE_MUST_FAIL
  return tensor;
#else
  return std::move(tensor);
#endif
}
