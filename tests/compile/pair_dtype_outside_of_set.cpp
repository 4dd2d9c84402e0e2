// expect: no dtype meets all of them
#include "dlbridge/check.h"

using namespace dlbridge;

struct floating {
  static constexpr void apply(Requirement& r) noexcept { r.dtypes = dtypes(DType::kFloat32, DType::kFloat64); }
};

bool fits(const Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return !check<const int, floating>(t);
#else
  return !check<const float, floating>(t);
#endif
}
