#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(three, m) {
  m.def("first", [](nb::ndarray<float, nb::ndim<1>, nb::device::cpu> a) { return a.view()(0); });
  m.def("row", [](nb::ndarray<const double, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu> a, int i) {
    return a.view()(i, 0);
  });
  m.def("copy", [](nb::ndarray<const float, nb::ndim<2>, nb::device::cpu> a,
                   nb::ndarray<float, nb::ndim<2>, nb::device::cpu> b) { b.view()(0, 0) = a.view()(0, 0); });
}
