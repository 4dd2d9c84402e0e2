// The functions of pybind11_args.cpp, with nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(nanobind_args, m) {
  m.def("rows", [](nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> a) { return a.shape(0); });
  m.def("any", [](nb::ndarray<nb::ro> a) { return a.ndim(); });
  m.def("nothing", [](nb::handle) { return 3; });
}
