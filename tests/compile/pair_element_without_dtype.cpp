// expect: no dtype is known for this element type. For raw bytes say std::byte
#include "dlbridge/tensor_view.h"

#ifdef DLBRIDGE_MUST_FAIL
struct Element {
  unsigned char value;
};
#else
using Element = std::byte;
#endif

void* first(dlbridge::Tensor& t) { return t.view<Element, 1>().data(); }
