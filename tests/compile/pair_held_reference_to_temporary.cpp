// expect: deleted function|function .* has been explicitly deleted|deleted conversion
#include "dlbridge/converters/std.h"

float first(dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  const std::span<float>& span = dlbridge::to<std::span<float>>(t);
#else
  const auto held = dlbridge::to<std::span<float>>(t);
  const std::span<float>& span = held;
#endif
  return span[0];
}
