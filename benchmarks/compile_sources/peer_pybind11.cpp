#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;

PYBIND11_MODULE(three, m) {
  m.def("first", [](py::array_t<float> a) { return a.unchecked<1>()(0); });
  m.def("row", [](py::array_t<double, py::array::c_style> a, int i) { return a.unchecked<2>()(i, 0); });
  m.def("copy",
        [](py::array_t<float> a, py::array_t<float> b) { b.mutable_unchecked<2>()(0, 0) = a.unchecked<2>()(0, 0); });
}
