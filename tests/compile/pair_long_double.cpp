// expect: no dtype is known for this element type, a number of more than 64 bits
#include "dlbridge/dtype.h"

#ifdef DLBRIDGE_MUST_FAIL
using Element = long double;  // DLPack cannot carry x87's 80 bits in 16 bytes
#else
using Element = double;
#endif

constexpr dlbridge::DType kDType = dlbridge::dtype_of_v<Element>;
