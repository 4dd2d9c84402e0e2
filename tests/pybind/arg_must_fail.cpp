// What Arg does not let through, beside what it does. Compiles as it stands; with DLBRIDGE_MUST_FAIL each REFUSED line
// is an error, for the reason in the `// expect:` line before it (test_cpp_extension.py).
#include <dlbridge/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <variant>

#ifdef DLBRIDGE_MUST_FAIL
#define REFUSED(...) __VA_ARGS__
#else
#define REFUSED(...)
#endif

namespace {

namespace py = pybind11;
using namespace dlbridge;

using Read = Arg<const float, rank<2>>;
using Write = Arg<float, rank<2>>;
using OnGpu = Arg<const float, rank<2>, on_cuda>;
using Anything = Arg<const void>;

[[maybe_unused]] float sum(TensorView<const float, 2, any_layout, any_device> v) { return *v.data(); }
[[maybe_unused]] void fill(TensorView<float, 2> v) { v(0, 0) = 1; }

[[maybe_unused]] void elements(const Read& read, const Write& write) {
  sum(read.view()), sum(write.view()), fill(write.view());
  write.view()(0, 0) = read.view()(0, 0);
  // expect: could not convert .*const float|no matching function for call to 'fill'
  REFUSED(fill(read.view());)
  // expect: assignment of read-only location|cannot assign to return value
  REFUSED(read.view()(0, 0) = 1;)
  // expect: takes one index for each axis
  REFUSED(write.view()(0);)
}

[[maybe_unused]] void one_owner(Read read) {
  const Read moved = std::move(read);
  // expect: use of deleted function .*Arg\(const|implicitly-deleted copy constructor of
  REFUSED(const Read copied = moved;)
}

[[maybe_unused]] void streams(const OnGpu& gpu, const Anything& anything, stream_ref stream) {
  static_cast<void>(gpu.view(stream));
  static_cast<void>(anything.tensor());
  // expect: elements of device memory cannot be reached from host code
  REFUSED(static_cast<void>(gpu.view(stream).begin());)
  // expect: name the stream that you use it on
  REFUSED(static_cast<void>(gpu.view());)
  // expect: any dtype: an Arg<void> has no elements to view
  REFUSED(static_cast<void>(anything.view());)
}

[[maybe_unused]] void owners_that_stay(const py::object& object, stream_ref stream) {
  const auto read = object.cast<Read>();
  const auto gpu = object.cast<OnGpu>();
  const Tensor tensor = read.tensor();
  sum(read.view()), sum(gpu.view(stream)), sum(tensor.view<const float, 2>());
  // expect: a temporary gives no view
  REFUSED(sum(object.cast<Read>().view());)
  // expect: a temporary gives no view
  REFUSED(sum(object.cast<OnGpu>().view(stream));)
  // expect: a temporary gives no view
  REFUSED(sum(read.tensor().view<const float, 2>());)
}

[[maybe_unused]] Arg<const float, may_convert> converted(Arg<const float, may_convert> a) { return a; }
// expect: a writable argument is never converted
REFUSED([[maybe_unused]] Arg<float, may_convert> lost(Arg<float, may_convert> a) { return a; })

[[maybe_unused]] Arg<float, c_contig, on_cpu> placed(Arg<float, c_contig, on_cpu> a) { return a; }
// expect: no layout meets all of them
REFUSED([[maybe_unused]] Arg<float, c_contig, f_contig> twice(Arg<float, c_contig, f_contig> a) { return a; })
// expect: no device meets all of them
REFUSED([[maybe_unused]] Arg<float, on_cpu, on_cuda> both(Arg<float, on_cpu, on_cuda> a) { return a; })
// expect: no rank meets all of shape<...>, rank<...>
REFUSED([[maybe_unused]] Arg<float, shape<dyn, 3>, rank<1>> cut(Arg<float, shape<dyn, 3>, rank<1>> a) { return a; })
// expect: no rank meets all of shape<...>, rank<...>
REFUSED([[maybe_unused]] Arg<float, shape<dyn, 3>, rank<3>> longer(Arg<float, shape<dyn, 3>, rank<3>> a) { return a; })

enum class Colour : std::uint8_t {};
[[maybe_unused]] Arg<std::byte> bytes(Arg<std::byte> a) { return a; }
// expect: no dtype is known for this element type, an enum
REFUSED([[maybe_unused]] Arg<Colour> colours(Arg<Colour> a) { return a; })
// expect: no dtype is known for this element type, a pointer
REFUSED([[maybe_unused]] Arg<const float*> pointers(Arg<const float*> a) { return a; })

using Either = Arg<const any_of<float, double>, rank<1>>;
[[maybe_unused]] void dispatch(const Either& either, const Arg<any_of<float, double>, on_cuda>& gpu, stream_ref s) {
  visit(either, [](auto v) { return v.size(); });
  visit(gpu, s, [](auto v) { return v.size(); });
  // expect: one of several dtypes: visit
  REFUSED(static_cast<void>(either.view());)
  // expect: the function returns another type for another element type
  REFUSED(visit(either, [](auto v) { return v(0); });)
  // expect: name the stream that you use it on, visit
  REFUSED(visit(gpu, [](auto v) { return v.size(); });)
}
// expect: the const belongs to the set
REFUSED([[maybe_unused]] void inner(Arg<any_of<const float, const double>> a) { static_cast<void>(a); })
// expect: two of the element types are of one dtype
REFUSED([[maybe_unused]] void bytes_twice(Arg<any_of<std::byte, std::uint8_t>> a) { static_cast<void>(a); })
// expect: two of the element types are of one dtype
REFUSED([[maybe_unused]] void ints(Arg<any_of<int, std::int32_t>> a) { static_cast<void>(a); })

struct Half {
  std::uint16_t bits;
};
// expect: no dtype is known for this element type
REFUSED([[maybe_unused]] Arg<const Half, rank<2>> halves(Arg<const Half, rank<2>> a) { return a; })

[[maybe_unused]] void results(py::module_& m) {
  m.def("tensor", [](Read a) { return a.tensor(); });
  m.def("numpy", [](Read a) { return as<"numpy">(a.tensor()); });
  m.def("own", [](Read a) { return as<other_module("my_library")>(a.tensor()); });
  m.def("either", [](std::variant<Read, Write> a) { return a.index(); });
  m.def("same", [](Read a) { return a; });
  m.def("like", [](const Read& a) { return like(a, a.tensor()); });
  m.def("named", [](Read a, std::string to) { return as(a.tensor(), std::move(to)); });
  // expect: a tensor that is to be like an argument is given away
  REFUSED(m.def("lvalue", [](Read a) {
    Tensor t = a.tensor();
    return like(a, t);
  });)
  // expect: no matching function for call to .like
  REFUSED(m.def("like_tensor", [](Tensor a) { return like(a, Tensor()); });)
  // expect: a TensorView owns nothing
  REFUSED(m.def("view", [](const Read& a) { return a.view(); });)
  // expect: a const Tensor cannot be a result
  REFUSED(m.def("shared", [](const Tensor* t) -> const Tensor& { return *t; });)
  // expect: dlbridge.convert\(\) knows no framework of this name
  REFUSED(m.def("misspelt", [](Read a) { return as<"tourch">(a.tensor()); });)
}

// expect: takes constraints behind T
REFUSED([[maybe_unused]] void unknown(Arg<float, int> a) { static_cast<void>(a); })

}  // namespace
