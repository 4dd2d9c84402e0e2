// expect: invalid conversion|no matching (function|constructor)
#include "dlbridge/owner.h"

#ifdef DLBRIDGE_MUST_FAIL
void release(void*);  // might throw, out of a destructor
#else
void release(void*) noexcept;
#endif

dlbridge::Owner own(void* context) { return dlbridge::Owner(context, release); }
