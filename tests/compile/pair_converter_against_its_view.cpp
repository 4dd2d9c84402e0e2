// expect: the converter's capabilities and the TensorView that its to\(\) takes contradict each other
#include "dlbridge/converter.h"

using namespace dlbridge;

struct Row {
  const float* data;
};
template <>
struct dlbridge::converter<Row> {
#ifdef DLBRIDGE_MUST_FAIL
  static constexpr caps capabilities{.name = "Row", .min_rank = 2, .read_only = true};
#else
  static constexpr caps capabilities{.name = "Row", .read_only = true};
#endif
  static Row to(TensorView<const float, 1> v, const options&) { return {v.data()}; }
};

const float* first(Tensor& t) {
  const auto held = to<Row>(t);
  return held->data;
}
