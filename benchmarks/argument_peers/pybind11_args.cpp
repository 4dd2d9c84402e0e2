// One function with an array argument, in every way that pybind11 and dlbridge offer. It returns the number of rows, so
// that the call measures the argument and little else.
#include <dlbridge/pybind11.h>
#include <pybind11/numpy.h>

namespace py = pybind11;
using dlbridge::dyn;

using Matrix = dlbridge::Arg<const float, dlbridge::shape<dyn, dyn>, dlbridge::c_contig>;

PYBIND11_MODULE(pybind11_args, m) {
  dlbridge::connect();
  dlbridge::def(m, "rows", [](Matrix a) { return a.view().extent(0); }, py::arg("a"));
  m.def("rows_module_def", [](Matrix a) { return a.view().extent(0); }, py::arg("a"));
  m.def("rows_reference", [](const Matrix& a) { return a.view().extent(0); }, py::arg("a"));
  m.def("rows_array_t", [](const py::array_t<float, py::array::c_style>& a) { return a.shape(0); }, py::arg("a"));
  dlbridge::def(
      m, "any", [](dlbridge::Arg<const void, dlbridge::any_device> a) { return a.device().device_id + 2; },
      py::arg("a"));
  m.def("nothing", [](py::handle) { return 3; });
}
