// expect: no dlbridge::converter for this type
#include <span>

#include "dlbridge/testing/conformance.h"
#ifndef DLBRIDGE_MUST_FAIL
#include "dlbridge/converters/std.h"
#endif

bool good() { return dlbridge::conformance<std::span<float>>().empty(); }
