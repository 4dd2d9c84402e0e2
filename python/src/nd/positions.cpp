// Functions of positions on the host, in one call: see host_only.h.
#include "ndarray/core/positions.h"

#include <vector>

#include "ndarray/core/ready.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

// Host arrays in a tuple or a list, of which there are a few.
struct HostArrays {
  static constexpr std::size_t kMost = 32;
  const Tensor* arrays[kMost];
  std::size_t count = 0;
  Ref items;
  std::span<const Tensor* const> get() const noexcept { return {arrays, count}; }
};

bool parse_host_arrays(PyObject* object, HostArrays& out) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  out.items = fixed_items(object);
  checked(out.items.get());
  const Py_ssize_t n = PyTuple_GET_SIZE(out.items.get());
  if (n == 0 || n > static_cast<Py_ssize_t>(HostArrays::kMost)) return false;
  for (; out.count < static_cast<std::size_t>(n); ++out.count) {
    out.arrays[out.count] = host_array(PyTuple_GET_ITEM(out.items.get(), static_cast<Py_ssize_t>(out.count)));
    if (out.arrays[out.count] == nullptr) return false;
  }
  return true;
}

// A tuple of Python's ints.
bool parse_extents(PyObject* object, Shape& out) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) > kMaxDims) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(object); ++k)
    if (!parse_integer(PyTuple_GET_ITEM(object, k), out.dims[out.ndim++])) return false;
  return true;
}

constexpr char kRavelMultiIndex[] = "ravel_multi_index()";
constexpr char kRavelOnHost[] = "ravel_on_host($module, parts, dims, mode)\n--\n\n"
                                "ravel_multi_index() of host arrays of one shape, in C order; None for others.";
PyObject* ravel_on_host(PyObject*, const Call& a) {
  HostArrays parts;
  Shape dims;
  if (!parse_host_arrays(a.given(0), parts) || !parse_extents(a.given(1), dims) || !PyUnicode_Check(a.given(2)))
    Py_RETURN_NONE;
  const core::Bounds bounds = parse_bounds(a.given(2), a.operation());
  return made_or_none(
      a, [&](Tensor& out, bool& done) { return core::ravel_positions(parts.get(), dims.get(), bounds, out, done); });
}

constexpr char kUnravelIndex[] = "unravel_index()";
constexpr char kUnravelOnHost[] = "unravel_on_host($module, places, shape)\n--\n\n"
                                  "unravel_index() of a host array, in C order; None for others.";
PyObject* unravel_on_host(PyObject*, const Call& a) {
  const Tensor* places = host_array(a.given(0));
  Shape shape;
  if (places == nullptr || !parse_extents(a.given(1), shape)) Py_RETURN_NONE;
  std::vector<Tensor> parts(static_cast<std::size_t>(shape.ndim));
  bool done = false;
  throw_if_bad(core::unravel_positions(*places, shape.get(), parts, done), a.operation());
  if (!done) Py_RETURN_NONE;
  return tuple_of(parts);
}

constexpr char kBincount[] = "bincount()";
constexpr char kCountOnHost[] = "count_on_host($module, x, weights=None, minlength=0)\n--\n\n"
                                "bincount() of host arrays; None for others.";
PyObject* count_on_host(PyObject*, const Call& a) {
  const Tensor *x = host_array(a.given(0)), *weights = host_array(a[1]);
  if (x == nullptr || (a[1] != nullptr && weights == nullptr) || !PyLong_CheckExact(a.given(2))) Py_RETURN_NONE;
  const std::int64_t least = a.integer(2, 0);
  if (least < 0) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::count_values(*x, weights, least, out, done); });
}

constexpr char kDigitize[] = "digitize()";
constexpr char kFallsOnHost[] = "falls_on_host($module, x)\n--\n\n"
                                "Whether the elements of a dense vector of the host fall; None where some rise and "
                                "some fall, and for other arrays.";
PyObject* falls_on_host(PyObject*, const Call& a) {
  const Tensor* x = host_array(a.given(0));
  if (x == nullptr || x->dl.ndim != 1 || !core::lies_ready(*x)) Py_RETURN_NONE;
  const std::optional<bool> found = core::host_kernels::falls(core::dtype_of(*x), x->dl.data, x->size);
  return found ? PyBool_FromLong(*found ? 1 : 0) : Ref::borrow(Py_None).release();
}

template <Status (*write)(const Tensor&, const Tensor&, const Tensor&, bool&)>
PyObject* write_by_mask(PyObject*, const Call& a) {
  const Tensor *x = host_array(a.given(0)), *mask = host_array(a.given(1)), *values = host_array(a.given(2));
  bool done = false;
  if (x == nullptr || mask == nullptr || values == nullptr) Py_RETURN_FALSE;
  const CriticalSection of_target(a.given(0));
  throw_if_bad(write(*x, *mask, *values, done), a.operation());
  return PyBool_FromLong(done ? 1 : 0);
}

constexpr char kPutmask[] = "putmask()";
constexpr char kPutMaskedOnHost[] = "put_masked_on_host($module, x, mask, values)\n--\n\n"
                                    "putmask() of dense host arrays of one shape and dtype, done where it says True.";
constexpr char kPlace[] = "place()";
constexpr char kPlaceOnHost[] = "place_on_host($module, x, mask, values)\n--\n\n"
                                "place() of dense host arrays of one dtype, done where it says True.";

constexpr char kChoose[] = "choose()";
constexpr char kChooseOnHost[] = "choose_on_host($module, numbers, choices)\n--\n\n"
                                 "choose() among dense host arrays of one shape and dtype; None for others.";
PyObject* choose_on_host(PyObject*, const Call& a) {
  const Tensor* numbers = host_array(a.given(0));
  HostArrays choices;
  if (numbers == nullptr || !parse_host_arrays(a.given(1), choices)) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::choose(*numbers, choices.get(), out, done); });
}

}  // namespace

void init_positions(PyObject* module) {
  add_functions(
      module,
      {method<kRavelOnHost, ravel_on_host, kRavelMultiIndex>(), method<kFallsOnHost, falls_on_host, kDigitize>(),
       method<kUnravelOnHost, unravel_on_host, kUnravelIndex>(), method<kCountOnHost, count_on_host, kBincount>(),
       method<kPutMaskedOnHost, write_by_mask<core::put_masked>, kPutmask>(),
       method<kPlaceOnHost, write_by_mask<core::place>, kPlace>(), method<kChooseOnHost, choose_on_host, kChoose>()});
}

}  // namespace dlbridge::py::nd
