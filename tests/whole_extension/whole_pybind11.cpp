#include <dlbridge/pybind11.h>

#include "functions.h"

namespace py = pybind11;

PYBIND11_MODULE(whole_pybind11, m) {
  dlbridge::connect();
  dlbridge::def(m, "total", &whole::total, py::arg("a"));
  dlbridge::def(m, "scaled", &whole::scaled, py::arg("a"), py::arg("by"));
  dlbridge::def(m, "negate", &whole::negate, py::arg("a"));
  dlbridge::def(m, "dot", &whole::dot, py::arg("a"), py::arg("b"));
  dlbridge::def(m, "copy_into", &whole::copy_into, py::arg("a"), py::arg("out"));
  dlbridge::def(m, "column_sums", &whole::column_sums, py::arg("a"));
  dlbridge::def(m, "filled", &whole::filled, py::arg("n"), py::arg("value"));
  dlbridge::def(m, "axes", &whole::axes, py::arg("any"));
  py::class_<whole::Sum>(m, "Sum")
      .def(py::init<const dlbridge::Arg<const double, dlbridge::rank<1>>&>(), py::arg("first"))
      .def("add", &whole::Sum::add, py::arg("a"))
      .def_property_readonly("values", &whole::Sum::values, py::return_value_policy::reference_internal);
}
