// expect: \.result is view or copy, and to\(\) takes a Tensor&&
#include "dlbridge/testing/conformance.h"

using namespace dlbridge;

struct Row {
  const float* data;
};
template <>
struct dlbridge::converter<Row> {
  static constexpr caps capabilities{.name = "Row", .read_only = true, .source = source_kind::none};
#ifdef DLBRIDGE_MUST_FAIL
  static Row to(Tensor&& t, const options&) { return {static_cast<const float*>(t.dl.data)}; }
#else
  static Row to(Tensor& t, const options&) { return {static_cast<const float*>(t.dl.data)}; }
#endif
};

bool good() { return conformance<Row>().empty(); }
