// expect: ask its ok\(\), return it, or give it to throw_if_failed\(\)
#include "dlbridge/describe.h"

bool run(dlbridge::Tensor& out, const float* values) {
  const std::int64_t extents[] = {2, 3};
#ifdef DLBRIDGE_MUST_FAIL
  dlbridge::describe_memory(out, values, dlbridge::kCpuDevice, 2, extents, nullptr);
  return true;
#else
  return dlbridge::describe_memory(out, values, dlbridge::kCpuDevice, 2, extents, nullptr).ok();
#endif
}
