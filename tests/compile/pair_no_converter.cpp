// expect: no dlbridge::converter for this type
#include "dlbridge/converter.h"
#ifndef DLBRIDGE_MUST_FAIL
#include "dlbridge/converters/std.h"
#endif
#include <vector>

dlbridge::Tensor take(std::vector<float>&& v) { return dlbridge::from(std::move(v)); }
