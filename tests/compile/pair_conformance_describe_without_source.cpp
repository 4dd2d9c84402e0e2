// expect: \.source is none, and there is a describe\(\) or from\(\)
#include "dlbridge/testing/conformance.h"

using namespace dlbridge;

struct Row {
  const float* data;
};
template <>
struct dlbridge::converter<Row> {
#ifdef DLBRIDGE_MUST_FAIL
  static constexpr auto kSource = source_kind::none;
#else
  static constexpr auto kSource = source_kind::view;
#endif
  static constexpr caps capabilities{.name = "Row", .read_only = true, .source = kSource};
  static Status describe(Row&, Tensor&) { return {}; }
  static Row to(TensorView<const float, 1> v, const options&) { return {v.data()}; }
};

bool good() { return conformance<Row>().empty(); }
