// The peer "nanobind cast": what an extension written with nanobind pays to take an array argument.
// Nothing is done with the array, so the call measures the cast and the release alone.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(dlbridge_nanobind_peer, m) {
  // nb::ro: without it nanobind refuses read-only sources such as bytes.
  m.def("cast", [](nb::ndarray<nb::ro>) {});
  m.def("cast_cpu", [](nb::ndarray<nb::ro, nb::device::cpu>) {});
  m.def("nothing", [](nb::handle) {});
}
