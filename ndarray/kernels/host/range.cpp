#include <algorithm>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/range.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

// Elements whose places are counted in 32 bits, of which vectors make floats.
constexpr std::int64_t kCounted = 4096;

// The values from position `first` on, but for an end that is told apart.
template <class T>
DLBRIDGE_ND_CLONES void write_values(const RangeFn<T>& range, std::int64_t first, std::int32_t n, T* out) {
  const RangeFn<T> value = range;
  if constexpr (std::is_integral_v<T>) {
    for (std::int32_t i = 0; i < n; ++i) out[i] = value(first + i);
  } else {
    const auto base = static_cast<double>(first);
    for (std::int32_t i = 0; i < n; ++i) out[i] = cast<T>(value.at(base + i));
  }
}

}  // namespace

int range(const RangeArgs& args) {
  return visit_dtype<kBoolSet | kRealSet>(
      args.dtype,
      [&args]<class T>() {
        const RangeFn<T> value(args);
        T* const out = static_cast<T*>(args.out);
        for (std::int64_t first = 0; first < args.n; first += kCounted)
          write_values(value, first, static_cast<std::int32_t>(std::min(kCounted, args.n - first)), out + first);
        if (args.endpoint && args.n > 0) out[args.n - 1] = value(args.n - 1);
        return 0;
      },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
