#include <dlbridge/nanobind.h>

#include <new>

#include "functions.h"

namespace nb = nanobind;

NB_MODULE(whole_nanobind, m) {
  dlbridge::connect();
  dlbridge::def(m, "total", &whole::total, nb::arg("a"));
  dlbridge::def(m, "scaled", &whole::scaled, nb::arg("a"), nb::arg("by"));
  dlbridge::def(m, "negate", &whole::negate, nb::arg("a"));
  dlbridge::def(m, "dot", &whole::dot, nb::arg("a"), nb::arg("b"));
  dlbridge::def(m, "copy_into", &whole::copy_into, nb::arg("a"), nb::arg("out"));
  dlbridge::def(m, "column_sums", &whole::column_sums, nb::arg("a"));
  dlbridge::def(m, "filled", &whole::filled, nb::arg("n"), nb::arg("value"));
  dlbridge::def(m, "axes", &whole::axes, nb::arg("any"));
  using First = dlbridge::Arg<const double, dlbridge::rank<1>>;
  nb::class_<whole::Sum> sum(m, "Sum");
  dlbridge::def(
      sum, "__init__", [](whole::Sum* self, const First& first) { new (self) whole::Sum(first); }, nb::arg("first"));
  dlbridge::def(sum, "add", &whole::Sum::add, nb::arg("a"));
  sum.def_prop_ro("values", &whole::Sum::values, nb::rv_policy::reference_internal);
}
