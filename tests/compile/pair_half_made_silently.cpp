// expect: could not convert .*to .*float16|cannot convert .*to .*float16|no known conversion|no viable conversion
#include "dlbridge/half.h"

dlbridge::float16 rounded(float x) {
#ifdef DLBRIDGE_MUST_FAIL
  return x;
#else
  return dlbridge::float16(x);
#endif
}
