// expect: \.source says that the type can be read, and there is no
#include "dlbridge/testing/conformance.h"

using namespace dlbridge;

struct Row {
  const float* data;
};
template <>
struct dlbridge::converter<Row> {
#ifdef DLBRIDGE_MUST_FAIL
  static constexpr caps capabilities{.name = "Row", .read_only = true};
#else
  static constexpr caps capabilities{.name = "Row", .read_only = true, .source = source_kind::none};
#endif
  static Row to(TensorView<const float, 1> v, const options&) { return {v.data()}; }
};

bool good() { return conformance<Row>().empty(); }
