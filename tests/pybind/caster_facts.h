// What a function of the test extension sees of an array.
#pragma once

#include <dlbridge/pybind11.h>

#include <cstdint>

namespace py = pybind11;
using namespace dlbridge;

namespace {

template <class View>
py::tuple dims(const View& extents) {
  py::tuple out(extents.size());
  for (std::size_t i = 0; i < extents.size(); ++i) out[i] = extents[i];
  return out;
}

// What the function sees: address, extents, strides in elements.
template <class View>
py::tuple facts(const View& v) {
  return py::make_tuple(reinterpret_cast<std::uintptr_t>(v.data()), dims(v.extents()), dims(v.strides()));
}

template <class View>
double sum(const View& v) {
  double total = 0;
  for (std::int64_t i = 0; i < v.extent(0); ++i)
    for (std::int64_t k = 0; k < v.extent(1); ++k) total += static_cast<double>(v(i, k));
  return total;
}

}  // namespace
