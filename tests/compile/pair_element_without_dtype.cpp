// expect: no dtype is known for this element type
#include <cstddef>

#include "dlbridge/tensor_view.h"

void* first(dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return t.view<std::byte, 1>().data();
#else
  return t.view<unsigned char, 1>().data();
#endif
}
