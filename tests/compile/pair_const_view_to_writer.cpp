// expect: X could write to the elements
#include "dlbridge/converters/std.h"

float first(dlbridge::TensorView<const float, 1, dlbridge::c_contig> v) {
#ifdef DLBRIDGE_MUST_FAIL
  return dlbridge::to<std::span<float>>(v)[0];
#else
  return dlbridge::to<std::span<const float>>(v)[0];
#endif
}
