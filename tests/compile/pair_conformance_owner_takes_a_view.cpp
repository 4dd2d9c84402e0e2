// expect: \.result is owner, so to\(\) has to take the tensor's owner along
#include "dlbridge/testing/conformance.h"

using namespace dlbridge;

struct Row {
  const float* data;
};
template <>
struct dlbridge::converter<Row> {
#ifdef DLBRIDGE_MUST_FAIL
  static constexpr auto kResult = result_kind::owner;
#else
  static constexpr auto kResult = result_kind::view;
#endif
  static constexpr caps capabilities{.name = "Row", .read_only = true, .source = source_kind::none, .result = kResult};
  static Row to(TensorView<const float, 1> v, const options&) { return {v.data()}; }
};

bool good() { return conformance<Row>().empty(); }
