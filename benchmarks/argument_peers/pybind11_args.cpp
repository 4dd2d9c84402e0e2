// One function with an array argument, in every way that pybind11 and dlbridge offer. It returns the number of rows, so
// that the call measures the argument and little else.
#include <dlbridge/empty.h>
#include <dlbridge/pybind11.h>
#include <pybind11/numpy.h>

#include <array>

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
  dlbridge::def(m, "made", [](Matrix a) { return dlbridge::like(a, dlbridge::empty<float>({3, 4})); }, py::arg("a"));
  m.def(
      "made_array_t",
      [](const py::array_t<float, py::array::c_style>&) {
        return py::array_t<float>(std::array<py::ssize_t, 2>{3, 4});
      },
      py::arg("a"));
  m.def(
      "made_over_memory",
      [](const py::array_t<float, py::array::c_style>&) {
        auto* data = new float[12];
        const py::capsule owner(data, [](void* p) { delete[] static_cast<float*>(p); });
        return py::array_t<float>(std::array<py::ssize_t, 2>{3, 4}, data, owner);
      },
      py::arg("a"));
  m.def("nothing", [](py::handle) { return 3; });
}
