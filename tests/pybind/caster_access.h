// How a function reaches the elements of an array (test_caster_access.py).
#pragma once

#include <dlbridge/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include "caster_facts.h"

namespace {

template <class View>
std::vector<int> items(const View& view) {
  std::vector<int> out;
  for (const int x : view) out.push_back(x);
  return out;
}

using Cube = Arg<const int, rank<3>>;
static_assert(std::forward_iterator<decltype(std::declval<const Cube&>().view().begin())>);
static_assert(std::contiguous_iterator<decltype(std::declval<const Arg<int, c_contig>&>().view().begin())>);

void define_access(py::module_& m) {
  def(m, "items_cube", [](Cube a) { return items(a.view()); }, py::arg("a"));
  def(m, "items_any", [](Arg<const int> a) { return items(a.view()); }, py::arg("a"));
  def(m, "items_dense", [](Arg<const int, c_contig> a) { return items(a.view()); }, py::arg("a"));
  def(m, "items_kept", [](Cube a) {  // an iterator outlives the view that it comes from
    decltype(a.view().begin()) begin;
    begin = a.view().begin();
    const auto end = a.view().end();
    return begin == end ? std::vector<int>() : std::vector<int>(begin++, end);
  });
  def(m, "algorithms", [](Arg<const int> a) {
    const auto v = a.view();
    return py::make_tuple(std::accumulate(v.begin(), v.end(), 0), std::ranges::count(v, 1),
                          std::distance(v.begin(), v.end()));
  });
  def(m, "add_one", [](Arg<int> a) {
    for (int& x : a.view()) ++x;
  });
  def(m, "flat_any", [](Arg<const int> a) {
    const auto run = a.view().flat();
    return std::vector<int>(run.begin(), run.end());
  });
  def(m, "flat_dense", [](Arg<const int, rank<2>, c_contig> a) { return a.view().flat().size(); });
  def(m, "element", [](Arg<const int, rank<2>> a, int i, int k) { return a.view()(i, k); });
  def(m, "element_dense", [](Arg<const int, c_contig> a, int i, int k) { return a.view()(i, k); });
}

}  // namespace
