// searchsorted on the host: a binary search for each value.
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/search_row.h"

namespace dlbridge::nd::host_kernels {

int search(const SearchArgs& args) {
  return visit_dtype<kAllSet>(
      args.dtype,
      [&]<class T>() {
        const T* sorted = static_cast<const T*>(args.sorted);
        const T* values = static_cast<const T*>(args.values);
        for (std::int64_t j = 0; j < args.count; ++j)
          args.out[j] = functors::search_row(sorted, args.n, values[j], args.right);
        return 0;
      },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
