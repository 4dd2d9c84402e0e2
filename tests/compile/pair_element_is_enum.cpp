// expect: no dtype is known for this element type, an enum. Say std::underlying_type_t<E>
#include <type_traits>

#include "dlbridge/tensor_view.h"

enum class Colour : unsigned char { kRed, kGreen };

void* first(dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return t.view<Colour, 1>().data();
#else
  return t.view<std::underlying_type_t<Colour>, 1>().data();
#endif
}
