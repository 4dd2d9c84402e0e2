// expect: ask its ok\(\), return it, or give it to throw_if_failed\(\)
// lines: 12
#include "dlbridge/errors.h"

dlbridge::Status step();

bool run() {
#ifdef DLBRIDGE_MUST_FAIL
  step();
  return true;
#else
  return step().ok();
#endif
}
