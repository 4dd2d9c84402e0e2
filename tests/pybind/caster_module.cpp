// The extension module of tests/python/test_caster.py: one function for each thing that an argument or a result can be.
#include <dlbridge/converters/std.h>
#include <dlbridge/empty.h>
#include <dlbridge/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "caster_access.h"
#include "caster_dtypes.h"
#include "caster_places.h"

namespace py = pybind11;
using namespace dlbridge;

namespace {

using Matrix = Arg<const float, shape<dyn, dyn>, c_contig>;
using Vector = Arg<float, shape<dyn>>;

// A constraint of a user's own.
struct floating {
  static constexpr void apply(Requirement& r) noexcept { r.dtypes = dtypes(DType::kFloat32, DType::kFloat64); }
};

double plus(Vector a, float value) {
  for (std::int64_t i = 0; i < a.view().extent(0); ++i) a.view()(i) += value;
  return a.view().extent(0) > 0 ? a.view()(0) : 0;
}

double noexcept_sum(Matrix a) noexcept { return sum(a.view()); }

// Keeps a tensor, as a cache or an engine does.
struct Keeper {
  Tensor tensor;
  double total() const { return sum(tensor.view<const float, 2>()); }
};

std::atomic<int> released = 0;

// 0 1 2 … in memory of the module's, whose release is counted.
Tensor counted(std::int64_t rows, std::int64_t columns) {
  Tensor t = empty<float>({rows, columns});
  for (std::int64_t i = 0; i < t.size; ++i) static_cast<float*>(t.dl.data)[i] = static_cast<float>(i);
  t.owner = Owner(new Owner(std::move(t.owner)), [](void* context) noexcept {
    delete static_cast<Owner*>(context);
    ++released;
  });
  return t;
}

void define_arguments(py::module_& m) {
  def(
      m, "any",
      [](Arg<const void, any_device> a) {
        const Tensor t = a.tensor();
        const auto ndim = static_cast<std::size_t>(t.dl.ndim);
        return py::make_tuple(reinterpret_cast<std::uintptr_t>(t.dl.data), dims(std::span(t.dl.shape, ndim)),
                              dims(std::span(t.dl.strides, ndim)), std::string(t.dtype().name),
                              device_name(t.dl.device), t.readonly());
      },
      py::arg("a"));
  def(m, "flat", [](Arg<const float> a) { return facts(a.view()); }, py::arg("a"));
  def(m, "matrix", [](Matrix a) { return facts(a.view()); }, py::arg("a"), "A matrix.");
  m.def("plain_matrix", [](Matrix a) { return facts(a.view()); }, py::arg("a"));
  m.def("matrix_by_reference", [](const Matrix& a) { return facts(a.view()); }, py::arg("a"));
  def(m, "strided", [](Arg<const float, shape<dyn, dyn>> a) { return sum(a.view()); }, py::arg("a"));
  def(m, "fortran", [](Arg<const double, shape<dyn, dyn>, f_contig> a) { return facts(a.view()); }, py::arg("a"));
  def(m, "picture", [](Arg<const std::uint8_t, shape<dyn, dyn, 3>> a) { return facts(a.view()); }, py::arg("a"));
  def(m, "scalar", [](Arg<const float, shape<>> a) { return a.view()(); }, py::arg("a"));
  def(m, "nine", [](Arg<const std::int8_t, rank<9>> a) { return facts(a.view()); }, py::arg("a"));
  def(m, "aligned64", [](Arg<const float, aligned<64>> a) { return facts(a.view()); }, py::arg("a"));
  def(
      m, "floating",
      [](Arg<const void, rank<1>, floating> a) {
        const Tensor t = a.tensor();
        return py::make_tuple(std::string(t.dtype().name), t.dl.shape[0], t.dl.strides[0]);
      },
      py::arg("a"));
  def(m, "plus", &plus, py::arg("a"), py::arg("value") = 1.0F);
  def(m, "plus_keyword", &plus, py::arg("a"), py::kw_only(), py::arg("value") = 1.0F);
  int bias = 10;
  def(m, "capturing", [bias](Matrix a, int b) { return sum(a.view()) + bias + b; }, py::arg("a"), py::arg("b") = 0);
  def(m, "starred", [](Matrix a, const py::args& rest) { return sum(a.view()) + double(rest.size()); });
  def(m, "noexcept_sum", &noexcept_sum);
  def(
      m, "text", [](const std::string& s, Matrix a) { return s + std::to_string(a.view().size()); }, py::arg("s"),
      py::arg("a"));
  def(m, "optional", [](std::optional<Matrix> a) { return a ? sum(a->view()) : -1; }, py::arg("a") = py::none());
  def(m, "list", [](std::vector<Matrix> all) {
    double total = 0;
    for (const Matrix& a : all) total += sum(a.view());
    return total;
  });
  def(m, "owned", [](Tensor t) { return Keeper{std::move(t)}; }, py::arg("t"));
  m.def("cast", [](const py::object& o) {
    const auto a = o.cast<Matrix>();
    return sum(a.view());
  });
}

using Row = Arg<const float, rank<1>>;

// What an error has to name, however pybind11 comes to call the function.
void define_named(py::module_& m) {
  def(m, "dot", [](Row x, Row y) { return x.view()(0) * y.view()(0); }, py::arg("x"), py::arg("y"));
  m.def("plain_dot", [](Row x, Row y) { return x.view()(0) * y.view()(0); }, py::arg("x"), py::arg("y"));
  m.def("keyword_only", [](const py::args&, Matrix a) { return sum(a.view()); }, py::arg("a"));
  m.def("plain_none", [](Row) { return true; }, py::arg("x") = py::none());
  m.def("define_none",
        [](py::module_& other) { def(other, "f", [](Row) { return true; }, py::arg("x") = py::none()); });
  def(
      m, "dense",
      [](Arg<const void> a) {
        const Tensor t = a.tensor();
        return t.view<const float, 2, c_contig>()(0, 0);
      },
      py::arg("a"));
  def(
      m, "fill",
      [](Arg<float, shape<dyn, dyn, 3>, c_contig> a) {
        for (float& value : a.view()) value = 1;
      },
      py::arg("a"));
  def(
      m, "fill_fortran",
      [](Arg<double, shape<dyn, dyn>, f_contig> a) {
        for (double& value : a.view()) value = 1;
      },
      py::arg("a"));
}

void define_overloads(py::module_& m) {
  using namespace std::string_literals;
  m.def("which", [](Arg<const float, overloaded>) { return "float32"s; });
  m.def("which", [](Arg<const double, overloaded>) { return "float64"s; });
  m.def("which", [](int) { return "int"s; });
  def(m, "which_def", [](Arg<const float, overloaded>) { return "float32"s; });
  def(m, "which_def", [](Arg<const double, overloaded>) { return "float64"s; });
  def(m, "which_def", [](int) { return "int"s; });
  m.def("two", [](Arg<const float, rank<1>>) { return "float32"s; }, py::arg("a"));
  m.def("two", [](Arg<const double, rank<1>>) { return "float64"s; }, py::arg("b"));
  m.def("two", [](const std::string& text) { return text; });
  m.def("pair", [](Row, int) { return "int"s; });
  m.def("pair", [](Row, Arg<const double, rank<1>>) { return "float64"s; });
  m.def("strict", [](Arg<const float>) { return "float32"s; });
  m.def("strict", [](int) { return "int"s; });
  m.def("no_convert", [](Matrix) { return true; }, py::arg("a").noconvert());
  def(m, "no_none", [](Matrix) { return true; }, py::arg("a").none(false));
}

void define_conversions(py::module_& m) {
  def(
      m, "convert",
      [](Arg<const float, shape<dyn, dyn>, c_contig, may_convert> a) {
        return py::make_tuple(reinterpret_cast<std::uintptr_t>(a.view().data()), sum(a.view()));
      },
      py::arg("a"));
  def(
      m, "convert_fortran",
      [](Arg<const double, shape<dyn, dyn>, f_contig, may_convert> a) {
        return py::make_tuple(reinterpret_cast<std::uintptr_t>(a.view().data()), sum(a.view()));
      },
      py::arg("a"));
  m.def("convert_or_int", [](Arg<const float, shape<dyn, dyn>, may_convert, overloaded> a) { return sum(a.view()); });
  m.def("convert_or_int", [](int i) { return i; });
}

void define_lifetimes(py::module_& m) {
  using unlocked = py::call_guard<py::gil_scoped_release>;
  def(m, "keep", [](Matrix a) { return Keeper{a.tensor()}; }, py::arg("a"));
  def(m, "keep_unlocked", [](Matrix a) { return Keeper{a.tensor()}; }, py::arg("a"), unlocked());
  // The argument dies without the GIL, with the last reference to what was read.
  def(m, "total_unlocked", [](Arg<const std::int32_t, shape<dyn, dyn>> a) { return sum(a.view()); }, unlocked());
  m.def("plain_total_unlocked", [](Arg<const std::int32_t, shape<dyn, dyn>> a) { return sum(a.view()); }, unlocked());
  m.def(
      "throw_unlocked", [](Arg<const std::int32_t, shape<dyn, dyn>>) { throw std::runtime_error("thrown"); },
      unlocked());
  // It outlives the call on another thread, and dies there.
  m.def("total_on_thread", [](Matrix a) {
    double total = 0;
    py::gil_scoped_release released_gil;
    std::thread([a = std::move(a), &total] { total = sum(a.view()); }).join();
    return total;
  });
  m.def("tensor_on_thread", [](Matrix a) {
    Tensor t = a.tensor();
    double total = 0;
    py::gil_scoped_release released_gil;
    std::thread([t = std::move(t), &total] { total = sum(t.view<const float, 2>()); }).join();
    return total;
  });
}

void define_results(py::module_& m) {
  m.def("released", [] { return released.load(); });
  def(m, "tensor", &counted);
  def(m, "numpy", [](std::int64_t r, std::int64_t c) { return as<"numpy">(counted(r, c)); });
  def(m, "torch", [](std::int64_t r, std::int64_t c) { return as<"torch">(counted(r, c)); });
  def(m, "jax", [](std::int64_t r, std::int64_t c) { return as<"jax">(counted(r, c)); });
  def(m, "cupy", [](std::int64_t r, std::int64_t c) { return as<"cupy">(counted(r, c)); });
  def(m, "nobody", [] { return as<other_module("no_such_framework")>(counted(1, 1)); });
  def(m, "readonly", [] {
    Tensor t = counted(1, 2);
    t.flags |= kFlagReadOnly;
    return t;
  });
  def(m, "pair", [] { return std::pair(counted(1, 2), as<"numpy">(counted(2, 1))); });
  def(m, "nothing", [] { return std::optional<Tensor>(); });
  m.def("lent", [](Keeper& k) -> Tensor& { return k.tensor; }, py::return_value_policy::reference);
  def(
      m, "unlocked_result", [](std::int64_t n) { return as<"numpy">(counted(n, n)); }, py::arg("n"),
      py::call_guard<py::gil_scoped_release>());
}

// Memory of an object that Python holds.
struct Grid {
  std::vector<float> values = {1, 2, 3};
};

void define_results_like_arguments(py::module_& m) {
  using Any = Arg<const float, any_device>;
  def(m, "like", [](Any a, std::int64_t rows) { return like(a, counted(rows, 2)); }, py::arg("a"), py::arg("rows") = 1);
  m.def("plain_like", [](const Any& a) { return like(a, counted(1, 2)); }, py::arg("a"));
  def(m, "like_unlocked", [](Any a) { return like(a, counted(1, 2)); }, py::call_guard<py::gil_scoped_release>());
  def(m, "like_anything", [](Arg<const void> a) { return like(a, counted(1, 2)); });
  def(m, "like_float8", [](Any a) {
    Tensor t = counted(1, 2);
    t.set_dtype(info(DType::kFloat8E5M2));
    return like(a, std::move(t));
  });
  def(m, "same", [](Any a) { return a; }, py::arg("a"));
  def(m, "same_of_two", [](Any a, Any b, bool first) { return std::pair(like(first ? a : b), like(b)); });
  def(m, "same_unlocked", [](Any a) { return like(a); }, py::call_guard<py::gil_scoped_release>());
  def(m, "same_converted", [](Arg<const float, may_convert> a) { return a; }, py::arg("a"));
  def(m, "same_list", [](std::vector<Vector> all) { return all; });
  def(m, "moved_from", [](Any a) {
    const Any moved = std::move(a);
    return like(a, counted(1, 2));
  });
  def(m, "named", [](std::string to) { return as(counted(1, 2), std::move(to)); }, py::arg("to"));
  def(m, "unnamed", []() -> Result { return counted(1, 2); });
  py::class_<Grid>(m, "Grid")
      .def(py::init())
      .def_property_readonly("values", [](Grid& g) { return from(borrow(g.values, unowned)); })
      .def(
          "numpy", [](Grid& g) { return as<"numpy">(from(borrow(g.values, unowned))); },
          py::return_value_policy::reference_internal)
      .def(
          "named", [](Grid& g, std::string to) { return as(from(borrow(g.values, unowned)), std::move(to)); },
          py::return_value_policy::reference_internal)
      .def("owned", [](const py::object& self) { return from(borrow(self.cast<Grid&>().values, keep(self))); });
  def(m, "of_capsule", [] {
    auto* values = new std::vector<float>{1, 2, 3};
    const py::capsule owner(values, [](void* kept) {
      delete static_cast<std::vector<float>*>(kept);
      ++released;
    });
    return as<"numpy">(from(borrow(*values, keep(owner))));
  });
}

void define_errors(py::module_& m) {
  def(m, "throw_error", [](int code) { throw Error(static_cast<ErrorCode>(code), "operation: reason"); });
  m.def("plain_throw_error", [](int code) { throw Error(static_cast<ErrorCode>(code), "operation: reason"); });
  def(m, "throw_bad_alloc", [] { throw std::bad_alloc(); });
  def(m, "throw_python", [] { throw py::key_error("missing"); });
}

// Foreign device memory, as a kernel of the module's has left it on a stream.
Tensor made_on(std::uintptr_t address, stream_arg s) {
  Tensor t = empty<std::int32_t>({2, 3});
  t.owner.reset();
  t.dl.data = reinterpret_cast<void*>(address);
  t.dl.device = {kDLCUDA, 0};
  t.ready = Ordering::on_stream(s.handle());
  return t;
}

void define_streams(py::module_& m) {
  def(m, "stream", [](stream_arg s) { return s.handle(); }, py::arg("stream") = py::none());
  m.def("stream_or_text", [](stream_arg) { return "stream"; });
  m.def("stream_or_text", [](const std::string&) { return "text"; });
  def(
      m, "on_gpu", [](Arg<float, shape<dyn, dyn, 3>, c_contig, on_cuda> a, stream_arg s) { return facts(a.view(s)); },
      py::arg("a"), py::arg("stream") = py::none());
  def(
      m, "ints_on_gpu",
      [](Arg<const std::int32_t, shape<dyn, dyn>, on_cuda> a, stream_arg s) {
        const auto view = a.view(s);
        return py::make_tuple(reinterpret_cast<std::uintptr_t>(view.data()), s.handle());
      },
      py::arg("a"), py::arg("stream") = py::none(), py::call_guard<>());
  def(
      m, "ints_unlocked",
      [](Arg<const std::int32_t, shape<dyn, dyn>, on_cuda> a, stream_arg s) {
        py::gil_scoped_release released_gil;
        return reinterpret_cast<std::uintptr_t>(a.view(s).data());
      },
      py::arg("a"), py::arg("stream") = py::none());
  def(
      m, "ints_anywhere",
      [](Arg<const std::int32_t, shape<dyn, dyn>, any_device> a, stream_arg s) {
        return reinterpret_cast<std::uintptr_t>(a.view(s).data());
      },
      py::arg("a"), py::arg("stream") = py::none());
  def(m, "ints_to_host", [](Arg<const std::int32_t, shape<dyn, dyn>, may_convert> a) { return sum(a.view()); });
  def(
      m, "ints_to_gpu",
      [](Arg<const std::int32_t, shape<dyn, dyn>, on_cuda, may_convert> a, stream_arg s) {
        return device_name(a.view(s).device());
      },
      py::arg("a"), py::arg("stream") = py::none());
  def(m, "made_on", &made_on, py::arg("address"), py::arg("stream"));
  using Any = Arg<const std::int32_t, any_device>;
  def(m, "same_device_array", [](Any a) { return a; });
  def(m, "like_made_on", [](Any a, std::uintptr_t address, stream_arg s) { return like(a, made_on(address, s)); });
  def(m, "current_stream", [](int device) { return current_stream(device).handle(); });
}

}  // namespace

PYBIND11_MODULE(caster_module, m) {
  connect();
  py::class_<Keeper>(m, "Keeper").def("total", &Keeper::total).def_property_readonly("address", [](const Keeper& k) {
    return reinterpret_cast<std::uintptr_t>(k.tensor.dl.data);
  });
  define_arguments(m);
  define_named(m);
  define_places(m);
  define_overloads(m);
  define_dtypes(m);
  define_access(m);
  define_conversions(m);
  define_lifetimes(m);
  define_results(m);
  define_results_like_arguments(m);
  define_errors(m);
  define_streams(m);
}
