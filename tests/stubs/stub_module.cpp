// The extension module of tests/python/test_stubs.py, of pybind11 or, with WITH_NANOBIND, of nanobind.
#include <dlbridge/empty.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#ifdef WITH_NANOBIND
#include <dlbridge/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
namespace bind = nanobind;
#define MODULE NB_MODULE
#else
#include <dlbridge/pybind11.h>
#include <pybind11/stl.h>
namespace bind = pybind11;
#define MODULE PYBIND11_MODULE
#endif

using namespace dlbridge;

namespace {

using Matrix = Arg<const float, rank<2>, c_contig>;
using Picture = Arg<std::uint8_t, shape<dyn, dyn, 3>>;

Tensor one() { return empty<float>({1}); }

}  // namespace

MODULE(stub_module, m) {
  connect();
  def(m, "matrix", [](Matrix a) { return a.view().size(); }, bind::arg("a"));
  def(m, "paint", [](Picture a) { a.view()(0, 0, 0) = 1; }, bind::arg("a"));
  def(m, "several", [](Arg<const any_of<int, double>> a) { return a.readonly(); }, bind::arg("a"));
  def(m, "maybe", [](std::optional<Matrix> a) { return a.has_value(); }, bind::arg("a") = bind::none());
  def(m, "all", [](std::vector<Matrix> a) { return a.size(); }, bind::arg("a"));
  def(
      m, "on_gpu", [](const Arg<float, on_cuda>&, stream_arg s) { return s.handle(); }, bind::arg("a"),
      bind::arg("stream") = bind::none());
  def(m, "strict", [](Matrix a) { return a.readonly(); }, bind::arg("a").noconvert());
  def(m, "tensor", [](Tensor a) { return a.size; }, bind::arg("a"));
  def(m, "same", [](Matrix a) { return a; }, bind::arg("a"));
  def(m, "alike", [](Matrix a) { return like(a, one()); }, bind::arg("a"));
  def(m, "as_tensor", [] { return one(); });
  def(m, "as_numpy", [] { return as<"numpy">(one()); });
  def(m, "as_nd", [] { return as<"nd">(one()); });
}
