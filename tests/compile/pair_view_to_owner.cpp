// expect: X wants an owner, and a view has none
#include "dlbridge/converter.h"

struct Owning {
  dlbridge::Tensor tensor;
};
template <>
struct dlbridge::converter<Owning> {
  static constexpr caps capabilities{.name = "Owning", .result = result_kind::owner};
  static Owning to(Tensor&& t, const options&) { return Owning{std::move(t)}; }
};

Owning keep(dlbridge::Tensor& t) {
#ifdef DLBRIDGE_MUST_FAIL
  return dlbridge::to<Owning>(t.view<float, 1>());
#else
  return dlbridge::to<Owning>(t);
#endif
}
