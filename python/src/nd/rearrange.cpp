// Triangles, arrays rolled along axes, and rows of host arrays left out or put in.
#include "ndarray/core/rearrange.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ndarray/core/index_line.h"
#include "ndarray/core/ready.h"
#include "ndarray/core/rows.h"
#include "ndarray/core/views.h"
#include "protocols/common/array_arguments.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

constexpr char kTriangle[] = "triangle($module, x, k, lower)\n--\n\n"
                             "The elements at and below (lower) or above the k-th diagonal of the last two axes, "
                             "others 0; of a vector a square.";
PyObject* triangle(PyObject*, const Call& call) {
  const bool lower = call.flag(2, true);
  const Call a = call.renamed(lower ? "tril()" : "triu()");
  const Tensor& x = a.array(0);
  if (x.dl.ndim == 0)
    throw_issue(a.operation(), ErrorCode::kMalformed,
                "the array is 0-d; a triangle needs two axes, or a vector that is each row");
  const std::int64_t diagonal = PyNumber_AsSsize_t(a.given(1), nullptr);  // clamped: it may be past 64 bits
  checked(PyErr_Occurred() == nullptr);
  return make_result(a.operation(), [&](Tensor& out) { return core::triangle(x, diagonal, lower, out); });
}

constexpr char kRoll[] = "roll($module, x, steps)\n--\n\n"
                         "A copy with each element moved along axes, by steps[axis] places from 0 to below the extent.";
PyObject* roll(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Shape steps = a.shape(1);
  return make_result(a.operation(), [&](Tensor& out) { return core::roll(x, steps.get(), out); });
}

constexpr char kPad[] = "pad()";
constexpr char kPadOnDevice[] = "pad_on_device($module, x, before, after, mode, value)\n--\n\n"
                                "pad() of a device array by one kernel; None for others, modes and kinds of values.";
PyObject* pad_on_device(PyObject*, const Call& a) {
  constexpr const char* kModes[] = {"constant", "edge", "wrap", "symmetric", "reflect"};  // as PadMode has them
  PyObject *const x = a.given(0), *const value = a.given(4);
  const auto* const found = std::ranges::find(kModes, std::string_view(a.text(3)));
  core::Input input;
  if (x == nullptr || Py_TYPE(x) != array_types.cuda || found == std::end(kModes) ||
      (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) || parse_operand(value, input) != Parsed::kYes) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  const Shape before = a.shape(1), after = a.shape(2);
  return made_or_none(a, [&](Tensor& out, bool& done) {
    const auto mode = static_cast<core::PadMode>(found - std::begin(kModes));
    return core::pad(tensor_of(x), mode, before.get(), after.get(), input.scalar, out, done);
  });
}

// --- delete() and insert() on the host: see host_only.h --------------------------------------------------------------

// A host array and one of its axes; all of them as one for None.
struct RowsArgument {
  const Tensor* x = nullptr;
  Tensor flat;
  int axis = 0;
  std::int64_t extent() const noexcept { return x->dl.shape[axis]; }
};

bool parse_rows(PyObject* array, PyObject* axis, RowsArgument& out, const char* operation) {
  out.x = host_array(array);
  if (out.x == nullptr) return false;
  if (axis == nullptr) {
    std::int64_t shape[1] = {out.x->size};
    throw_if_bad(core::reshape(*out.x, shape, core::Order::kC, std::nullopt, out.flat), operation);
    out.x = &out.flat;
    return true;
  }
  std::int64_t number = 0;
  const bool exists = parse_place(axis, out.x->dl.ndim, false, number);
  out.axis = static_cast<int>(number);
  return exists;
}

// One place, or those of a list.
bool parse_places(PyObject* object, std::int64_t n, bool end, std::vector<std::int64_t>& out) {
  if (!PyList_CheckExact(object)) return parse_place(object, n, end, out.emplace_back());
  const Ref items = fixed_items(object);
  checked(items.get());
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(items.get()); ++k)
    if (!parse_place(PyTuple_GET_ITEM(items.get(), k), n, end, out.emplace_back())) return false;
  return true;
}

bool mark_by_array(const Tensor& given, std::vector<std::uint8_t>& marks) {
  const DType dtype = core::dtype_of(given);
  const auto n = static_cast<std::int64_t>(marks.size());
  Tensor copy;
  const Tensor* ready = nullptr;
  if (core::is_bool(dtype)) {
    if (given.dl.ndim != 1 || given.size != n) return false;
    throw_if_bad(core::ready_as(DType::kBool, given, copy, ready), "delete()");
    std::transform(core::elements<std::uint8_t>(*ready), core::elements<std::uint8_t>(*ready) + n, marks.begin(),
                   [](std::uint8_t byte) { return byte != 0 ? 1 : 0; });
    return true;
  }
  if (!core::is_integer(dtype)) return false;
  throw_if_bad(core::ready_as(DType::kInt64, given, copy, ready), "delete()");
  for (std::int64_t k = 0; k < given.size; ++k) {
    const std::int64_t place = core::elements<std::int64_t>(*ready)[k];
    if (place < -n || place >= n) return false;
    marks[static_cast<std::size_t>(place < 0 ? place + n : place)] = 1;
  }
  return true;
}

// False: what they are is for Python to say.
bool mark_rows(PyObject* object, std::vector<std::uint8_t>& marks) {
  const auto n = static_cast<Py_ssize_t>(marks.size());
  if (const Tensor* given = host_array(object)) return mark_by_array(*given, marks);
  if (PySlice_Check(object)) {
    Py_ssize_t start, stop, step;
    checked(PySlice_Unpack(object, &start, &stop, &step));
    const Py_ssize_t count = PySlice_AdjustIndices(n, &start, &stop, step);
    for (Py_ssize_t k = 0; k < count; ++k) marks[static_cast<std::size_t>(start + k * step)] = 1;
    return true;
  }
  std::vector<std::int64_t> places;
  if (!parse_places(object, n, false, places)) return false;
  for (const std::int64_t place : places) marks[static_cast<std::size_t>(place)] = 1;
  return true;
}

// A number, also of a list or an array.
bool names_one(PyObject* object) {
  if (const Tensor* given = host_array(object)) return given->size == 1 && core::is_integer(core::dtype_of(*given));
  return PyLong_Check(object) || (PyList_Check(object) && PyList_GET_SIZE(object) == 1);
}

// A mask of the elements of a vector.
bool is_mask_for(const Tensor* mask, const RowsArgument& rows) {
  return mask != nullptr && core::is_bool(core::dtype_of(*mask)) && mask->dl.ndim == 1 && rows.x->dl.ndim == 1 &&
         mask->size == rows.extent();
}

constexpr char kDelete[] = "delete()";
constexpr char kDeleteOnHost[] = "delete_on_host($module, x, places, axis=None)\n--\n\n"
                                 "delete() of a host array; None for others.";
PyObject* delete_on_host(PyObject*, const Call& a) {
  RowsArgument rows;
  if (!parse_rows(a.given(0), a[2], rows, a.operation())) Py_RETURN_NONE;
  if (const Tensor* mask = host_array(a.given(1)); is_mask_for(mask, rows)) {
    Tensor kept;
    const core::Input operand{mask, {}};
    throw_if_bad(core::elementwise(core::Op::kLogicalNot, {&operand, 1}, {}, kept), a.operation());
    return make_result(a.operation(), [&](Tensor& out) { return core::gather_true(*rows.x, kept, out); });
  }
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(rows.extent()));
  if (!mark_rows(a.given(1), marks)) Py_RETURN_NONE;
  // NumPy cuts out a slice or one row, and takes what is left of others by a mask.
  const bool is_cut = PySlice_Check(a.given(1)) || names_one(a.given(1));
  const core::RowOrder order = is_cut ? core::RowOrder::kAsGiven : core::RowOrder::kRowsOutermost;
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::drop_rows(*rows.x, rows.axis, marks, order, out); });
}

constexpr char kCompress[] = "compress()";
constexpr char kCompressOnHost[] = "compress_on_host($module, condition, x, axis=None)\n--\n\n"
                                   "compress() of a host array by a vector of bools; None for others.";
PyObject* compress_on_host(PyObject*, const Call& a) {
  const Tensor* condition = host_array(a.given(0));
  RowsArgument rows;
  if (condition == nullptr || condition->dl.ndim != 1 || !core::is_bool(core::dtype_of(*condition)) ||
      !parse_rows(a.given(1), a[2], rows, a.operation()) || condition->size > rows.extent())
    Py_RETURN_NONE;
  if (is_mask_for(condition, rows))
    return make_result(a.operation(), [&](Tensor& out) { return core::gather_true(*rows.x, *condition, out); });
  Tensor copy;
  const Tensor* ready = nullptr;
  throw_if_bad(core::ready_as(DType::kBool, *condition, copy, ready), a.operation());
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(rows.extent()), 1);
  const auto* const chosen = core::elements<std::uint8_t>(*ready);
  std::transform(chosen, chosen + condition->size, marks.begin(), [](std::uint8_t byte) { return byte == 0 ? 1 : 0; });
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::drop_rows(*rows.x, rows.axis, marks, core::RowOrder::kC, out); });
}

// A real number, as an array of it would be cast.
bool parse_row_value(PyObject* object, core::Scalar& out) {
  core::Input input;
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) || host_array(object) != nullptr)
    checked(parse_operand(object, input) != Parsed::kError);
  else return false;
  if (input.array != nullptr && input.array->dl.ndim != 0) return false;
  out = input.array != nullptr ? core::read_scalar(input.array->dl.data, core::dtype_of(*input.array)) : input.scalar;
  out.strong = true;
  constexpr std::int64_t kExact = std::int64_t{1} << 53;  // float64 holds every integer up to here
  return out.kind != core::ScalarKind::kComplex && !out.huge && !out.above_int64 && out.i > -kExact && out.i < kExact;
}

constexpr char kInsert[] = "insert()";
constexpr char kInsertOnHost[] = "insert_on_host($module, x, places, value, axis=None)\n--\n\n"
                                 "insert() of one real number into a host array; None for others.";
PyObject* insert_on_host(PyObject*, const Call& a) {
  RowsArgument rows;
  core::Scalar value;
  std::vector<std::int64_t> places;
  if (!parse_rows(a.given(0), a[3], rows, a.operation()) || !parse_row_value(a.given(2), value) ||
      !parse_places(a.given(1), rows.extent(), true, places))
    Py_RETURN_NONE;
  std::ranges::sort(places);
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::insert_rows(*rows.x, rows.axis, places, value, out); });
}

}  // namespace

void init_rearrange(PyObject* module) {
  add_functions(module,
                {method<kTriangle, triangle>(), method<kRoll, roll>(), method<kPadOnDevice, pad_on_device, kPad>(),
                 method<kDeleteOnHost, delete_on_host, kDelete>(), method<kInsertOnHost, insert_on_host, kInsert>(),
                 method<kCompressOnHost, compress_on_host, kCompress>()});
}

}  // namespace dlbridge::py::nd
