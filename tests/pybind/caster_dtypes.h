// Arguments of several dtypes, and overloads of which one comes closest (test_caster_dtypes.py).
#pragma once

#include <dlbridge/pybind11.h>

#include <cstdint>
#include <string>

#include "caster_facts.h"

namespace {

// One function for several dtypes.
void define_dtypes(py::module_& m) {
  using Any = Arg<const any_of<float, double, int>>;
  const auto total = [](auto v) -> double {
    double sum = 0;
    for (std::int64_t i = 0; i < v.extent(0); ++i) sum += static_cast<double>(v(i));
    return sum;
  };
  def(
      m, "visited",
      [](Any a) {
        return visit(a, [](auto v) {
          return py::make_tuple(std::string(info(dtype_of_v<typename decltype(v)::value_type>).name), facts(v));
        });
      },
      py::arg("a"));
  def(
      m, "visited_row", [total](Arg<const any_of<float, std::uint8_t>, rank<1>> a) { return visit(a, total); },
      py::arg("a"));
  def(
      m, "visited_twice",
      [](Arg<any_of<float, double>, rank<1>> a, Arg<const any_of<float, int>, rank<1>> b) {
        visit(a, [&](auto to) {
          visit(b, [&](auto from) {
            for (std::int64_t i = 0; i < to.extent(0); ++i)
              to(i) += static_cast<typename decltype(to)::value_type>(from(i));
          });
        });
      },
      py::arg("a"), py::arg("b"));
  def(m, "visited_dense",
      [total](Arg<const any_of<float, double>, rank<1>, c_contig, may_convert> a) { return visit(a, total); });
  def(
      m, "visited_on_gpu",
      [](Arg<const any_of<float, std::int32_t>, on_cuda> a, stream_arg s) {
        return visit(a, s, [](auto v) { return facts(v); });
      },
      py::arg("a"), py::arg("stream") = py::none());
  using namespace std::string_literals;
  def(m, "nearest", [](Arg<const float, rank<1>>) { return "row"s; }, py::arg("a"));
  def(m, "nearest", [](Arg<const float, rank<2>, c_contig>) { return "matrix"s; }, py::arg("a"));
  def(
      m, "nearest", [](Arg<const double, rank<1>>, Arg<const float, rank<1>>) { return "two"s; }, py::arg("a"),
      py::arg("b"));
  def(
      m, "nearest", [](Arg<const float, rank<1>>, Arg<const float, rank<1>>) { return "rows"s; }, py::arg("a"),
      py::arg("b"));
}

}  // namespace
