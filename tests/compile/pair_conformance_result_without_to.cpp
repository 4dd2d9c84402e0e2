// expect: \.result says whether there is a to\(\)
#include "dlbridge/testing/conformance.h"

using namespace dlbridge;

struct Row {
  const float* data;
};
template <>
struct dlbridge::converter<Row> {
#ifdef DLBRIDGE_MUST_FAIL
  static constexpr auto kResult = result_kind::view;
#else
  static constexpr auto kResult = result_kind::none;
#endif
  static constexpr caps capabilities{.name = "Row", .source = source_kind::view, .result = kResult};
  static Status describe(Row&, Tensor&) { return {}; }
};

bool good() { return conformance<Row>().empty(); }
