// What the functions of Python's half ask of their arguments first: operands as arrays, axes, where the result goes.
#include <algorithm>
#include <vector>

#include "protocols/common/array_arguments.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

PythonFunction write_out("dlbridge.nd._arguments", "write_out");

// Also what stands for an array while nd.fuse records: it is given as it is.
Ref array_or_stand_in(PyObject* object, PyObject* like) {
  if (is_array(object)) return Ref::borrow(object);
  static PythonFunction convert("dlbridge.nd._arguments", "new_array");
  return convert(object, like);
}

}  // namespace

Ref as_array(PyObject* object, PyObject* like) {
  Ref array = array_or_stand_in(object, like);
  if (!is_array(array.get())) need_array(array.get(), "nd.asarray()");
  return array;
}

Ref into(PyObject* out, Ref result, const char* operation) {
  if (out == nullptr || out == Py_None) return result;
  const Ref name = owned(PyUnicode_FromString(operation));
  return write_out(out, result.get(), name.get());
}

namespace {

constexpr char kAsArray[] =
    "as_array($module, value, like=None)\n--\n\n"
    "`value` as an ndarray: itself, or a scalar or nested sequence on the device of `like`.\n\n"
    "TypeError for arrays of other frameworks: a function never moves data between devices unasked. asarray() does.";
PyObject* array_of(PyObject*, const Call& a) {
  return array_or_stand_in(a.given(0), a.given(1) == nullptr ? Py_None : a.given(1)).release();
}

constexpr char kAsArrays[] =
    "as_arrays($module, *values)\n--\n\n"
    "Each value as an ndarray, scalars and sequences on the device of the first ndarray among them.\n\n"
    "Python scalars are arrays of their own dtype, as in NumPy's functions that are not ufuncs: 300 is an int64, also\n"
    "beside a uint8.";
PyObject* arrays_of(PyObject*, PyObject* const* values, Py_ssize_t count) {
  PyObject* const* const first = std::find_if(values, values + count, is_array);
  Ref list = owned(PyList_New(count));
  for (Py_ssize_t k = 0; k < count; ++k)
    PyList_SET_ITEM(list.get(), k, array_or_stand_in(values[k], first == values + count ? Py_None : *first).release());
  return list.release();
}

constexpr char kNormalizeAxis[] =
    "normalize_axis($module, axis, ndim, operation)\n--\n\n"
    "`axis` counted from 0. AxisError unless -ndim <= axis < ndim, TypeError unless it is an integer.";
PyObject* normalize_axis(PyObject*, const Call& a) {
  return PyLong_FromLong(parse_axis(a.given(0), static_cast<int>(a.integer(1, 0)), a.text(2)));
}

constexpr char kNormalizeAxes[] =
    "normalize_axes($module, axis, ndim, operation)\n--\n\n"
    "One axis or several counted from 0, all of them for None. ValueError where one is named twice.";
PyObject* normalize_axes(PyObject*, const Call& a) {
  const char* operation = a.text(2);
  const auto ndim = static_cast<int>(a.integer(1, 0));
  const bool is_sequence = a[0] != nullptr && (PyTuple_Check(a[0]) || PyList_Check(a[0]));
  const Ref items = is_sequence ? fixed_items(a[0]) : Ref();
  checked(items || !is_sequence);
  const Py_ssize_t count = a[0] == nullptr ? ndim : is_sequence ? PyTuple_GET_SIZE(items.get()) : 1;
  Ref axes = owned(PyTuple_New(count));
  std::vector<bool> named(static_cast<std::size_t>(ndim));  // more than an array has, where a caller adds axes
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* item = is_sequence ? PyTuple_GET_ITEM(items.get(), k) : a[0];
    const int axis = a[0] == nullptr ? static_cast<int>(k) : parse_axis(item, ndim, operation);
    if (named[static_cast<std::size_t>(axis)])
      throw_error(PyExc_ValueError, "%s(): axis %S names one axis twice. Name each once", operation, a[0]);
    named[static_cast<std::size_t>(axis)] = true;
    PyTuple_SET_ITEM(axes.get(), k, checked(PyLong_FromLong(axis)));
  }
  return axes.release();
}

constexpr char kCommonShape[] =
    "common_shape($module, operation, *shapes)\n--\n\n"
    "The shape that arrays of these shapes broadcast to. ValueError where two extents differ and neither is 1.";
PyObject* common_shape(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const char* operation = PyUnicode_AsUTF8(args[0]);
  checked(operation != nullptr);
  std::vector<Shape> shapes;
  std::vector<core::Dims> dims;
  shapes.reserve(static_cast<std::size_t>(count));
  for (PyObject* object : std::span(args, static_cast<std::size_t>(count)).subspan(1)) {
    const Shape& shape = shapes.emplace_back(parse_shape(object, operation));
    if (std::ranges::any_of(dims.emplace_back(shape.get()), [](std::int64_t extent) { return extent < 0; }))
      throw_issue(operation, ErrorCode::kMalformed,
                  "shape " + core::shape_text(dims.back()) + " has a negative extent. Extents are 0 or more");
  }
  Shape common;
  throw_if_bad(core::broadcast_shapes(dims, common.dims, common.ndim), operation);
  return make_dims(common.dims, common.ndim, 1);
}

constexpr char kInto[] =
    "into($module, out, result, operation, casting='same_kind')\n--\n\n"
    "`result`, or `out` after it was written there. ValueError where the shapes differ, TypeError where casting "
    "forbids it.";
PyObject* result_into(PyObject*, const Call& a) {
  if (a[0] == nullptr) return Ref::borrow(a.given(1)).release();
  return a[3] == nullptr ? write_out(a[0], a.given(1), a.given(2)).release()
                         : write_out(a[0], a.given(1), a.given(2), a[3]).release();
}

}  // namespace

void init_operands(PyObject* module) {
  add_functions(module, {method<kAsArray, array_of>(), method<kAsArrays, arrays_of>(),
                         method<kNormalizeAxis, normalize_axis>(), method<kNormalizeAxes, normalize_axes>(),
                         method<kCommonShape, common_shape>(), method<kInto, result_into>()});
}

}  // namespace dlbridge::py::nd
