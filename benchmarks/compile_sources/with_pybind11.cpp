// Three functions, as compile_time.py times them; the other files here have the same three.
#include <dlbridge/pybind11.h>

using namespace dlbridge;

PYBIND11_MODULE(three, m) {
  connect();
  def(m, "first", [](Arg<float, rank<1>> a) { return a.view()(0); });
  def(m, "row", [](Arg<const double, shape<dyn, 3>, c_contig> a, int i) { return a.view()(i, 0); });
  def(m, "copy", [](Arg<const float, rank<2>> a, Arg<float, rank<2>> b) { b.view()(0, 0) = a.view()(0, 0); });
}
