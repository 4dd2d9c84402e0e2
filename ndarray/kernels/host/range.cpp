#include "ndarray/kernels/functors/range.h"
#include "ndarray/kernels/functions.h"

namespace dlbridge::nd::host_kernels {

int range(const RangeArgs& args) {
  return visit_dtype<kBoolSet | kRealSet>(
      args.dtype,
      [&args]<class T>() {
        const RangeFn<T> value(args);
        T* const out = static_cast<T*>(args.out);
        for (std::int64_t i = 0; i < args.n; ++i) out[i] = value(i);
        return 0;
      },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
