// expect: a view has elements, and void is no type of any
#include "dlbridge/tensor_view.h"

const void* first(const dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return t.view<const void, 1>().data();
#else
  return t.dl.data;
#endif
}
