// expect: deleted function|deleted operator
#include "dlbridge/converters/std.h"

float first(dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  const std::span<float> span = *dlbridge::to<std::span<float>>(t);  // its owner ends with the statement
  return span[0];
#else
  const auto held = dlbridge::to<std::span<float>>(t);
  return (*held)[0];
#endif
}
