// Arguments of several dtypes, and overloads of which one comes closest (test_caster_dtypes.py).
#pragma once

#include <dlbridge/converters/std.h>
#include <dlbridge/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "caster_facts.h"

namespace {

// Elements that C++20 has no arithmetic type for.
template <class T>
Tensor twice(const Arg<const T>& a) {
  std::vector<T> out;
  for (const T x : a.view()) out.push_back(T(2 * static_cast<float>(x)));
  return from(std::move(out));
}
void define_small_types(py::module_& m) {
  def(m, "twice_half", [](Arg<const float16> a) { return like(a, twice(a)); }, py::arg("a"));
  def(m, "twice_bfloat", [](Arg<const bfloat16> a) { return like(a, twice(a)); }, py::arg("a"));
  def(
      m, "round_half",
      [](Arg<const float, rank<1>> from, Arg<any_of<float16, bfloat16>, rank<1>> to) {
        visit(to, [&](auto out) {
          using Half = typename decltype(out)::value_type;
          for (std::int64_t i = 0; i < out.extent(0); ++i) out(i) = Half(from.view()(i));
        });
      },
      py::arg("source"), py::arg("to"));
  def(
      m, "bytes_of",
      [](Arg<const std::byte, rank<1>> a) {
        std::vector<int> out;
        for (const std::byte b : a.view()) out.push_back(std::to_integer<int>(b));
        return out;
      },
      py::arg("a"));
#if defined(__FLT16_MANT_DIG__)
  def(m, "twice_own_half", [](Arg<const _Float16> a) { return like(a, twice(a)); }, py::arg("a"));
#else
  m.attr("twice_own_half") = m.attr("twice_half");
#endif
}

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
  define_small_types(m);
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
