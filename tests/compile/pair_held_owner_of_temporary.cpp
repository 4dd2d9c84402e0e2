// expect: deleted function|deleted member function
#include "dlbridge/converters/std.h"

const dlbridge::Tensor& keep(dlbridge::Tensor& t, dlbridge::Held<std::span<float>>& held) {
#ifdef DLBRIDGE_MUST_FAIL
  static_cast<void>(held);
  return dlbridge::to<std::span<float>>(t).owner();
#else
  static_cast<void>(t);
  return held.owner();
#endif
}
