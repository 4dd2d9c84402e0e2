// Wherever pybind11 takes a function: classes, their constructors and properties, *args and **kwargs, and arrays within
// the standard's templates (test_caster_errors.py).
#pragma once

#include <dlbridge/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "caster_facts.h"

namespace {

// Members of all kinds.
struct Filter {
  using Matrix = Arg<const float, shape<dyn, dyn>, c_contig>;
  double total;

  explicit Filter(Matrix a) : total(sum(a.view())) {}
  Filter(const Matrix& a, double factor) : total(sum(a.view()) * factor) {}
  double apply(Matrix a, double factor) const { return sum(a.view()) * factor; }
  double add(const Matrix& a) noexcept { return total += sum(a.view()); }
};

void define_class(py::module_& m) {
  using Matrix = Filter::Matrix;
  auto filter = py::class_<Filter>(m, "Filter");
  filter.def(py::init<Matrix>(), py::arg("a"))
      .def("apply", &Filter::apply, py::arg("a"), py::arg("factor") = 1)
      .def("unnamed", &Filter::apply)
      .def(
          "__add__", [](const Filter& f, Matrix a) { return f.total + sum(a.view()); }, py::is_operator())
      .def_static(
          "of", [](Matrix a) { return Filter(std::move(a)); }, py::arg("a"))
      .def_property(
          "data", [](const Filter& f) { return f.total; }, [](Filter& f, Matrix a) { f.total = sum(a.view()); })
      .def_property_static("shared", [](const py::object&) { return 1; }, [](const py::object&, Matrix) {});
  // The same by dlbridge::def().
  def(filter, "add", &Filter::add, py::arg("a"));
  def(filter, "minus", [](const Filter& f, const Matrix& a) { return f.total - sum(a.view()); }, py::arg("a"));
  def(filter, py::init<Matrix, double>(), py::arg("b"), py::arg("factor"));
  py::class_<std::pair<double, int>>(m, "Factory")
      .def(py::init([](const Matrix& a, int n) { return std::pair(sum(a.view()), n); }), py::arg("a"),
           py::arg("n") = 1);
  m.def("define_none_member", [](py::module_& other) {
    auto cls = py::class_<std::pair<int, int>>(other, "Pair", py::module_local());
    def(cls, "f", [](const std::pair<int, int>&, Matrix) { return true; }, py::arg("x") = py::none());
  });
}

void define_places(py::module_& m) {
  using Matrix = Filter::Matrix;
  using Row = Arg<const float, rank<1>>;
  define_class(m);
  def(m, "starred_both", [](Matrix a, const py::args& rest, const py::kwargs& named) {
    return sum(a.view()) + static_cast<double>(10 * rest.size() + 100 * named.size());
  });
  def(
      m, "named_rest", [](Matrix a, const py::kwargs& named) { return sum(a.view()) + double(named.size()); },
      py::arg("a"));
  def(
      m, "optional_in_the_middle",
      [](int n, const std::optional<Matrix>& a, const std::string& s) {
        return n + static_cast<double>(s.size()) + (a ? sum(a->view()) : 0);
      },
      py::arg("n"), py::arg("a") = std::nullopt, py::arg("s") = "four");
  using Either = std::variant<std::monostate, Matrix, std::int64_t>;
  def(m, "either", [](const Either& a) { return a.index(); }, py::arg("a"));
  m.def("plain_either", [](const Either& a) { return a.index(); }, py::arg("a"));
  using Several = std::variant<std::int64_t, Row, Arg<const double, rank<1>>, Arg<const double, rank<2>, may_convert>>;
  def(m, "several", [](const Several& a) { return a.index(); }, py::arg("a"));
  m.def("plain_several", [](const Several& a) { return a.index(); }, py::arg("a"));
  m.def("several_or_text", [](const Several& a) { return a.index(); }, py::arg("a"));
  m.def("several_or_text", [](const std::string&) { return "text"; });
  def(
      m, "list_of_several",
      [](const std::vector<Several>& all) {
        std::vector<std::size_t> out;
        for (const Several& one : all) out.push_back(one.index());
        return out;
      },
      py::arg("all"));
  using Arrays = std::variant<Row, Arg<const double, rank<1>>, Arg<const double, rank<2>, may_convert>>;
  def(m, "arrays", [](Arrays a) { return a.index(); }, py::arg("a"));
  m.def("plain_arrays", [](const Arrays& a) { return a.index(); }, py::arg("a"));
  def(m, "same_arrays", [](Arrays a) { return a; }, py::arg("a"));
  def(m, "optional_arrays", [](const std::optional<Arrays>& a) { return a ? int(a->index()) : -1; }, py::arg("a"));
  def(
      m, "list_of_arrays", [](const std::vector<Arrays>& all) { return all.back().index() + 10 * all.size(); },
      py::arg("all"));
  int bias = 1;
  def(m, "capturing_several", [bias](const Several& a) { return a.index() + std::size_t(bias); }, py::arg("a"));
}

}  // namespace
