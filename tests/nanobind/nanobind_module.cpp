// The extension module of tests/python/test_nanobind.py: what dlbridge/nanobind.h makes of arguments and results.
#include <dlbridge/converters/std.h>
#include <dlbridge/empty.h>
#include <dlbridge/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using namespace dlbridge;

namespace {

using Matrix = Arg<const float, shape<dyn, dyn>, c_contig>;
using Row = Arg<const float, rank<1>>;

template <class View>
double sum(const View& view) {
  double total = 0;
  for (const auto x : view) total += static_cast<double>(x);
  return total;
}
Tensor ones(std::int64_t n) {
  Tensor t = empty<float>({n});
  for (float& x : t.view<float, 1>()) x = 1;
  return t;
}

struct Filter {
  std::vector<float> values;
  explicit Filter(std::vector<float> v) : values(std::move(v)) {}
  double apply(const Row& a) const { return sum(a.view()) * values.front(); }
  Filter(const Row& a, float by) : values(a.view().begin(), a.view().end()) {
    for (float& x : values) x *= by;
  }
  void assign(Row a) { values.assign(a.view().begin(), a.view().end()); }
};

void define_arguments(nb::module_& m) {
  def(m, "matrix", [](Matrix a) { return sum(a.view()); }, "a"_a, "A matrix.");
  def(m, "by_reference", [](const Matrix& a) { return sum(a.view()); }, "a"_a);
  def(m, "dot", [](const Row& x, Row y) { return sum(x.view()) * sum(y.view()); }, "x"_a, "y"_a);
  def(m, "unnamed", [](Row a, double by) { return by * sum(a.view()); });
  def(
      m, "scale",
      [](Arg<float, rank<1>> a, float by) {
        for (float& x : a.view()) x *= by;
      },
      "a"_a, "by"_a = 2.0F);
  int bias = 10;
  def(m, "capturing", [bias](Row a) { return bias + sum(a.view()); }, "a"_a);
  def(m, "converted", [](Arg<const float, rank<1>, may_convert> a) { return sum(a.view()); }, "a"_a);
  def(
      m, "dispatched",
      [](Arg<const any_of<int, float, double>> a) {
        return visit(a, [](auto view) -> double { return 100 * sizeof(*view.data()) + sum(view); });
      },
      "a"_a);
  def(m, "guarded", [](Row a) { return sum(a.view()); }, "a"_a, nb::call_guard<nb::gil_scoped_release>());
  def(m, "streamed", [](const Row&, stream_arg s) { return s.handle(); }, "a"_a, "stream"_a = nb::none());
  def(m, "tensor", [](Tensor t) { return std::string(t.dtype().name); }, "t"_a);
  def(m, "elsewhere", [](Row a) {
    double out = 0;
    const nb::gil_scoped_release unlocked;  // the thread takes it to drop the array
    std::thread([&out, a = std::move(a)] { out = sum(a.view()); }).join();
    return out;
  });
  def(m, "optional", [](std::optional<Row> a) { return a ? sum(a->view()) : -1; }, "a"_a = nb::none());
  m.def("plain", [](Row a) { return sum(a.view()); }, "a"_a);
  m.def("plain_or_text", [](Arg<const float, rank<1>, overloaded> a) { return sum(a.view()); }, "a"_a);
  m.def("plain_or_text", [](const std::string& text) { return static_cast<double>(text.size()); }, "a"_a);
  m.def("cast", [](const nb::object& object) {
    const auto a = nb::cast<Row>(object);
    return sum(a.view());
  });
}

// Arrays within the standard's templates, and beside *args and **kwargs.
void define_places(nb::module_& m) {
  const auto total = [](const std::vector<Row>& all) {
    double out = 0;
    for (const Row& one : all) out += sum(one.view());
    return out;
  };
  def(m, "list", total, "all"_a);
  def(m, "list_unlocked", total, "all"_a, nb::call_guard<nb::gil_scoped_release>());
  def(m, "optional_by_reference", [](const std::optional<Row>& a) { return a ? sum(a->view()) : -1; });
  def(
      m, "optional_in_the_middle",
      [](int n, std::optional<Row> a, int k) { return n + k + (a ? static_cast<int>(sum(a->view())) : 0); }, "n"_a,
      "a"_a = nb::none(), "k"_a = 5);
  using Either = std::variant<std::monostate, Row, std::int64_t>;
  def(m, "either", [](const Either& a) { return a.index(); }, "a"_a.none());
  using Several = std::variant<std::int64_t, Row, Arg<const double, rank<1>>, Arg<const double, rank<2>, may_convert>>;
  def(m, "several", [](const Several& a) { return a.index(); }, "a"_a);
  using Arrays = std::variant<Row, Arg<const double, rank<1>>, Arg<const double, rank<2>, may_convert>>;
  def(m, "arrays", [](Arrays a) { return a.index(); }, "a"_a);
  def(m, "same_arrays", [](Arrays a) { return a; }, "a"_a);
  def(m, "optional_arrays", [](const std::optional<Arrays>& a) { return a ? int(a->index()) : -1; }, "a"_a.none());
  def(
      m, "list_of_arrays", [](const std::vector<Arrays>& all) { return all.back().index() + 10 * all.size(); },
      "all"_a);
  def(
      m, "list_of_several",
      [](const std::vector<Several>& all) {
        std::vector<std::size_t> out;
        for (const Several& one : all) out.push_back(one.index());
        return out;
      },
      "all"_a);
  def(m, "several_or_pair", [](const Several& a) { return a.index(); }, "a"_a);
  def(m, "several_or_pair", [](Row, Row) { return 99; }, "a"_a, "b"_a);
  def(m, "several_or_text", [](const Several& a) { return a.index(); }, "a"_a);
  def(m, "several_or_text", [](const std::string& text) { return text.size(); }, "a"_a);
  def(m, "starred", [](Row a, const nb::args& rest, const nb::kwargs& named) {
    return sum(a.view()) + static_cast<double>(10 * rest.size() + 100 * named.size());
  });
}

void define_overloads(nb::module_& m) {
  def(m, "over", [](Arg<const float, rank<2>> a) { return "floats " + std::to_string(a.view().rank()); }, "a"_a);
  def(m, "over", [](Arg<const int, rank<1>> a) { return "ints " + std::to_string(a.view().rank()); }, "a"_a);
  def(
      m, "over", [](Row a, const Row& b) { return "two " + std::to_string(a.view().size() + b.view().size()); }, "a"_a,
      "b"_a);
}

void define_results(nb::module_& m) {
  def(m, "as_tensor", [](std::int64_t n) { return ones(n); }, "n"_a);
  def(m, "as_numpy", [](std::int64_t n) { return as<"numpy">(ones(n)); }, "n"_a);
  def(m, "as_named", [](std::int64_t n, const std::string& name) { return as(ones(n), name); }, "n"_a, "name"_a);
  def(m, "like_it", [](const Row& a) { return like(a, ones(a.view().extent(0))); }, "a"_a);
  def(m, "same", [](Row a) { return a; }, "a"_a);
  def(
      m, "fails",
      [](Row a) {
        const Tensor t = a.tensor();
        return t.view<const double, 2>().extent(0);
      },
      "a"_a);
}

void define_class(nb::module_& m) {
  auto filter = nb::class_<Filter>(m, "Filter");
  def(
      filter, "__init__", [](Filter* self, const Row& a) { new (self) Filter({a.view().begin(), a.view().end()}); },
      "a"_a);
  def(filter, nb::init<const Row&, float>(), "a"_a, "by"_a);
  def_prop_rw(
      filter, "data", [](const Filter& self) { return self.values.front(); },
      [](Filter& self, const Row& a) { self.values.assign(a.view().begin(), a.view().end()); });
  def_prop_rw(filter, "assigned", [](const Filter& self) { return self.values.size(); }, &Filter::assign);
  def(filter, "apply", &Filter::apply, "a"_a);
  def(
      filter, "with", [](Filter& self, const Row& a, float by) { return by * sum(a.view()) * self.values[0]; }, "a"_a,
      "by"_a = 2);
  def(filter, "assign", &Filter::assign, "a"_a);
  filter.def_prop_ro(
      "values", [](Filter& self) { return Result(from(borrow(std::span(self.values), unowned))); },
      nb::rv_policy::reference_internal);
  filter.def_prop_ro("kept", [](Filter& self) { return from(borrow(std::span(self.values), keep(nb::find(self)))); });
}

}  // namespace

NB_MODULE(nanobind_module, m) {
  connect();
  define_arguments(m);
  define_overloads(m);
  define_places(m);
  define_results(m);
  define_class(m);
  m.def("none_default",
        [](nb::module_ to) { def(to, "bad", [](Row a) { return sum(a.view()); }, "a"_a = nb::none()); });
}
