// expect: deleted function|deleted constructor
#include "dlbridge/owner.h"

dlbridge::Owner pass_on(dlbridge::Owner& owner) {
#ifdef DLBRIDGE_MUST_FAIL
  return owner;  // two owners would release twice
#else
  return static_cast<dlbridge::Owner&&>(owner);
#endif
}
