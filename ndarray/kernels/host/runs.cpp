// The runs of equal elements of a sorted row on the host, a block at a time: where runs begin is a mask, whose
// positions nonzero() finds without a branch an element.
#include <algorithm>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/runs.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kBlock = 4096;

// Of `count` elements, each of which has one before it.
template <class T, bool kEqualNan>
DLBRIDGE_ND_CLONES void mark_starts(const T* sorted, std::int64_t count, bool* starts) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T before = sorted[i - 1], here = sorted[i];
    if constexpr (std::is_integral_v<T>) starts[i] = before != here;
    else if constexpr (std::is_floating_point_v<T> && kEqualNan) starts[i] = (before != here) & (before == before);
    else if constexpr (std::is_floating_point_v<T>) starts[i] = before != here;
    else starts[i] = functors::begins_run(before, here, kEqualNan);
  }
}

template <class T>
int find_runs(const RunsArgs& args) {
  const T* sorted = static_cast<const T*>(args.sorted);
  T* values = static_cast<T*>(args.values);
  std::int64_t runs = 0;
  for (std::int64_t begin = 0; begin < args.n; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, args.n - begin);
    bool starts[kBlock];
    std::int64_t found[kBlock], count = 0;
    const std::int64_t skipped = begin == 0 ? 1 : 0;
    starts[0] = true;
    if (args.equal_nan) mark_starts<T, true>(sorted + begin + skipped, n - skipped, starts + skipped);
    else mark_starts<T, false>(sorted + begin + skipped, n - skipped, starts + skipped);
    nonzero({starts, n, found, &count, {}, 0});
    const auto place = [&](std::int64_t i) { return args.order == nullptr ? begin + i : args.order[begin + i]; };
    if (values != nullptr)
      for (std::int64_t k = 0; k < count; ++k) values[runs + k] = sorted[begin + found[k]];
    if (args.first != nullptr)
      for (std::int64_t k = 0; k < count; ++k) args.first[runs + k] = place(found[k]);
    if (args.lengths != nullptr)  // where they begin, as yet
      for (std::int64_t k = 0; k < count; ++k) args.lengths[runs + k] = begin + found[k];
    if (args.inverse != nullptr)
      for (std::int64_t i = 0, run = runs - 1; i < n; ++i) args.inverse[place(i)] = run += starts[i] ? 1 : 0;
    runs += count;
  }
  *args.count = runs;
  if (args.lengths == nullptr || runs == 0) return 0;
  for (std::int64_t run = 0; run + 1 < runs; ++run) args.lengths[run] = args.lengths[run + 1] - args.lengths[run];
  args.lengths[runs - 1] = args.n - args.lengths[runs - 1];
  return 0;
}

}  // namespace

int runs(const RunsArgs& args) {
  return visit_dtype<functors::kRunSet>(args.dtype, [&]<class T>() { return find_runs<T>(args); }, kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
