// rowkit: functions over the rows of a matrix that take NumPy arrays, PyTorch tensors and all others without a copy.
#include <dlbridge/empty.h>
#include <dlbridge/nanobind.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace nb = nanobind;
using namespace dlbridge;

namespace {

// Floats or doubles with any strides, read-only ones, too. Torch in, torch out.
Result normalized(Arg<const any_of<float, double>, rank<2>> a) {
  return visit(a, [&](auto rows) {
    using T = std::remove_cvref_t<decltype(rows(0, 0))>;
    Tensor out = empty<T>({rows.extent(0), rows.extent(1)});
    const auto to = out.view<T, 2>();
    for (std::int64_t i = 0; i < rows.extent(0); ++i) {
      T squares = 0;
      for (std::int64_t j = 0; j < rows.extent(1); ++j) squares += rows(i, j) * rows(i, j);
      for (std::int64_t j = 0; j < rows.extent(1); ++j) to(i, j) = rows(i, j) / std::sqrt(squares);
    }
    return like(a, std::move(out));
  });
}

// In place: what is written is the caller's.
void scale(Arg<float> a, float by) {
  for (float& x : a.view()) x *= by;
}

}  // namespace

NB_MODULE(rowkit, m) {
  connect();
  def(m, "normalized", &normalized, nb::arg("a"), "The rows of a matrix, each divided by its norm.");
  def(m, "scale", &scale, nb::arg("a"), nb::arg("by"), "Multiplies an array in place.");
}
