// expect: deleted function|deleted member function|deleted operator|overload resolution selected deleted
#include "dlbridge/converters/std.h"

float first(dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  const float* data = dlbridge::to<std::span<float>>(t)->data();
#else
  const auto held = dlbridge::to<std::span<float>>(t);
  const float* data = held->data();
#endif
  return *data;
}
