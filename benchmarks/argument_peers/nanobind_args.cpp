// The functions of pybind11_args.cpp, with nanobind: by its own arrays, and by dlbridge/nanobind.h.
#include <dlbridge/empty.h>
#include <dlbridge/nanobind.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;
using dlbridge::dyn;

using Matrix = dlbridge::Arg<const float, dlbridge::shape<dyn, dyn>, dlbridge::c_contig>;

// A new array of a framework, as nanobind's documentation makes them: the memory is a capsule's.
template <class Framework>
nb::ndarray<Framework, float, nb::ndim<2>> made(nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>) {
  auto* data = new float[12];
  return {data, {3, 4}, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<float*>(p); })};
}

NB_MODULE(nanobind_args, m) {
  m.def("rows", [](nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> a) { return a.shape(0); });
  m.def("any", [](nb::ndarray<nb::ro> a) { return a.ndim(); });
  m.def("made_numpy", made<nb::numpy>);
  m.def("made_torch", made<nb::pytorch>);
  m.def("made_jax", made<nb::jax>);
  dlbridge::connect();
  dlbridge::def(m, "rows_dlbridge", [](Matrix a) { return a.view().extent(0); }, nb::arg("a"));
  dlbridge::def(
      m, "made_dlbridge", [](Matrix a) { return dlbridge::like(a, dlbridge::empty<float>({3, 4})); }, nb::arg("a"));
  m.def("nothing", [](nb::handle) { return 3; });
}
