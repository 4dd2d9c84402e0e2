// x[key], x[key] = value, len and iteration; take, nonzero and the like.
#include "ndarray/core/indexing.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ndarray/core/sorting.h"
#include "ndarray/core/views.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

// A key with the arrays that were made for lists and NumPy arrays in it.
struct Key {
  union {
    core::IndexItem items[core::kMaxIndexItems];  // each is made when it is added: they are 6 KB
  };
  std::size_t count = 0;
  Ref made[core::kMaxIndexArrays];
  std::size_t made_count = 0;
  Key() noexcept {}
  core::IndexItem& add() noexcept { return *std::construct_at(&items[count++]); }
  std::span<const core::IndexItem> get() const noexcept { return {items, count}; }
};

[[noreturn, gnu::cold]] void throw_bad_item(PyObject* item) {
  throw_issue(
      "ndarray[key]", ErrorCode::kIndex,
      "only integers, slices, '...', None and integer or bool arrays are valid indices, got " + type_name(item));
}

// False for None.
bool parse_bound(PyObject* bound, std::int64_t& value) {
  if (bound == Py_None) return false;
  Py_ssize_t out;
  checked(_PyEval_SliceIndex(bound, &out) != 0);  // clamps what does not fit, as for lists
  value = out;
  return true;
}

void parse_slice(PyObject* object, core::IndexItem& out) {
  const auto* slice = reinterpret_cast<PySliceObject*>(object);
  out.kind = core::IndexItem::Kind::kSlice;
  out.step = 1;
  out.has_start = parse_bound(slice->start, out.start);
  out.has_stop = parse_bound(slice->stop, out.stop);
  parse_bound(slice->step, out.step);
  if (out.step == 0) throw_issue("ndarray[key]", ErrorCode::kMalformed, "slice step cannot be zero");
}

void parse_integer(PyObject* object, core::IndexItem& out) {
  out.kind = core::IndexItem::Kind::kInteger;
  out.start = checked_number(PyNumber_AsSsize_t(object, PyExc_IndexError));
}

void add_array(PyObject* array, core::IndexItem& out) {
  out.kind = core::IndexItem::Kind::kArray;
  out.array = &tensor_of(array);
}

bool names_an_array(PyObject* object) {
  return PyObject_HasAttrString(object, "__dlpack__") != 0 ||
         PyObject_HasAttrString(object, "__cupy_get_ndarray__") != 0;
}

// Lists, NumPy arrays, bools and arrays of other frameworks become arrays on x's device.
[[gnu::cold]] void convert_item(PyObject* object, DLDevice device, Key& key, core::IndexItem& out) {
  if (key.made_count == core::kMaxIndexArrays) throw_bad_item(object);
  const bool is_list = PyList_Check(object) || PyTuple_Check(object);
  if (!is_list && !PyBool_Check(object) && PyNumber_Check(object) == 0 && !PyObject_CheckBuffer(object) &&
      !names_an_array(object))
    throw_bad_item(object);
  Ref array = owned(to_array(object, std::nullopt, device, std::nullopt));
  if (is_list && tensor_of(array.get()).size == 0)  // without elements a list tells no dtype
    array = owned(to_array(array.get(), DType::kInt64, device, std::nullopt));
  add_array(array.get(), out);
  key.made[key.made_count++] = std::move(array);
}

void parse_item(PyObject* object, DLDevice device, Key& key) {
  if (key.count == core::kMaxIndexItems) throw_bad_item(object);
  core::IndexItem& out = key.add();
  if (PySlice_Check(object)) return parse_slice(object, out);
  if (PyLong_CheckExact(object)) return parse_integer(object, out);
  if (object == Py_Ellipsis || object == Py_None) {
    out.kind = object == Py_None ? core::IndexItem::Kind::kNewAxis : core::IndexItem::Kind::kEllipsis;
    return;
  }
  if (is_array(object)) return add_array(object, out);
  if (!PyBool_Check(object) && PyIndex_Check(object) && PyObject_HasAttrString(object, "__dlpack__") == 0)
    return parse_integer(object, out);  // NumPy's integer scalars among others
  convert_item(object, device, key, out);
}

void parse_key(PyObject* object, DLDevice device, Key& key) {
  if (!PyTuple_Check(object)) return parse_item(object, device, key);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(object); ++k) parse_item(PyTuple_GET_ITEM(object, k), device, key);
}

PyObject* get_item(PyObject* self, PyObject* object) {
  const Tensor& x = tensor_of(self);
  Key key;
  parse_key(object, x.dl.device, key);
  return make_result("ndarray[key]", [&](Tensor& out) {
    return core::is_basic(key.get())
               ? core::view_at(x, key.get(), out)
               : core::gather_at(x, key.get(), out, core::Bounds::kRefuse, core::CopyOrder::kKeep);
  });
}

int set_item(PyObject* self, PyObject* object, PyObject* value) {
  if (value == nullptr) throw_error(PyExc_TypeError, "elements of an array cannot be deleted");
  const Tensor& x = tensor_of(self);
  Key key;
  core::Input input;
  Ref made;
  parse_key(object, x.dl.device, key);
  const Parsed parsed = parse_operand(value, input);
  if (parsed == Parsed::kError) checked(pardon_numpy(value));  // it may be assigned from: that names both sides
  if (parsed != Parsed::kYes) {
    made = owned(to_array(value, std::nullopt, x.dl.device, std::nullopt));
    input.array = &tensor_of(made.get());
  }
  const CriticalSection of_target(self);
  throw_if_bad(core::assign_at(x, key.get(), input), "ndarray[key] = value");
  return 0;
}

Py_ssize_t length(PyObject* self) {
  const Tensor& x = tensor_of(self);
  if (x.dl.ndim == 0) throw_error(PyExc_TypeError, "len() of a 0-d array");
  return static_cast<Py_ssize_t>(x.dl.shape[0]);
}

PyObject* item_at(PyObject* self, Py_ssize_t i) {
  const Tensor& x = tensor_of(self);
  if (x.dl.ndim == 0) throw_error(PyExc_TypeError, "iteration over a 0-d array");
  if (i >= x.dl.shape[0]) {  // the end of an iteration, which nobody reads
    PyErr_SetNone(PyExc_IndexError);
    return nullptr;
  }
  core::IndexItem item;
  item.kind = core::IndexItem::Kind::kInteger;
  item.start = i;
  return make_result("ndarray[key]", [&](Tensor& out) { return core::view_at(x, {&item, 1}, out); });
}

PyObject* iterate(PyObject* self) {
  if (tensor_of(self).dl.ndim == 0) throw_error(PyExc_TypeError, "iteration over a 0-d array");
  return PySeqIter_New(self);
}

// --- functions -------------------------------------------------------------------------------------------------------

// Positions in x: integers, bools as 0 and 1.
Ref positions_of(PyObject* object, PyObject* x, const char* operation) {
  Ref positions = as_array(object, x);
  const Tensor& t = tensor_of(positions.get());
  const DType dtype = core::dtype_of(t);
  const bool is_whole = core::is_integer(dtype);
  if (is_whole) return positions;
  const bool may_be_any = !is_array(object) && t.size == 0;  // without elements a list tells no dtype
  if (!core::is_bool(dtype) && !may_be_any)
    throw_error(PyExc_TypeError, "%s: indices are %s; they must be integers", operation,
                std::string(info(dtype).name).c_str());
  return owned(make_result(operation,
                           [&](Tensor& out) { return core::copy_as(t, DType::kInt64, core::CopyOrder::kKeep, out); }));
}

constexpr char kTake[] =
    "take($module, a, indices, /, axis=None, out=None, mode='raise')\n--\n\n"
    "The elements at positions along an axis, of the flattened array by default.\n\n"
    "mode: \"raise\" refuses positions out of bounds (on the host; on a device they are clamped, so that nothing "
    "waits),\n"
    "\"wrap\" counts them round and round, \"clip\" sets them to the nearest. Source: Array API 2024.12, NumPy.";
PyObject* take(PyObject*, const Call& a) {
  const Ref source = as_array(a.given(0), is_array(a.given(1)) ? a.given(1) : Py_None);
  const core::Bounds bounds = parse_bounds(a[4], a.operation());
  const Ref positions = positions_of(a.given(1), source.get(), a.operation());
  const Tensor* x = &tensor_of(source.get());
  Tensor flat;
  if (a[2] == nullptr || x->dl.ndim == 0) {
    std::int64_t shape[1] = {x->size};
    throw_if_bad(core::reshape(*x, shape, core::Order::kC, std::nullopt, flat), a.operation());
    x = &flat;
  }
  int axis = a[2] == nullptr ? 0 : a.axis(2, x->dl.ndim);
  Key key;
  while (axis-- > 0) key.add();
  add_array(positions.get(), key.add());
  Ref taken =
      owned(make_result(a.operation(), [&](Tensor& out) { return core::gather_at(*x, key.get(), out, bounds); }));
  return into(a[3], std::move(taken), "take").release();
}

constexpr char kPut[] =
    "put($module, a, ind, v, mode='raise')\n--\n\n"
    "Writes values (over and over) to positions of the flattened array, in place; mode as for take().";
PyObject* put(PyObject*, const Call& a) {
  static PythonFunction as_values("dlbridge.nd._arguments", "as_values");
  static PythonFunction over_and_over("dlbridge.nd._indexing", "_over_and_over");
  static PythonFunction put_apart("dlbridge.nd._indexing", "_put_apart");
  const Tensor& x = a.array(0);
  const core::Bounds bounds = parse_bounds(a[3], a.operation());
  const Ref positions = positions_of(a.given(1), a.given(0), a.operation());
  Ref values = is_array(a.given(2)) ? Ref::borrow(a.given(2)) : as_values(a.given(2), a.given(0));
  const std::int64_t count = tensor_of(positions.get()).size;
  if (count == 0 || tensor_of(values.get()).size == 0) Py_RETURN_NONE;
  if (tensor_of(values.get()).size != 1 && tensor_of(values.get()).size != count) {
    const Ref n = owned(PyLong_FromLongLong(count));
    values = over_and_over(values.get(), n.get());
  }
  Tensor flat;
  bool viewed = false;
  throw_if_bad(core::reshape_view(x, {&x.size, 1}, core::Order::kC, flat, viewed), a.operation());
  if (!viewed) {
    const Ref mode = a[3] == nullptr ? owned(PyUnicode_FromString("raise")) : Ref::borrow(a[3]);
    put_apart(a.given(0), positions.get(), values.get(), mode.get());
    Py_RETURN_NONE;
  }
  const auto in_a_row = [&](const Ref& array, Tensor& out) {
    std::int64_t shape[1] = {tensor_of(array.get()).size};
    throw_if_bad(core::reshape(tensor_of(array.get()), shape, core::Order::kC, std::nullopt, out), a.operation());
  };
  Tensor at, source;
  in_a_row(positions, at);
  in_a_row(values, source);
  Key key;
  core::IndexItem& item = key.add();
  item.kind = core::IndexItem::Kind::kArray;
  item.array = &at;
  const CriticalSection of_target(a.given(0));
  throw_if_bad(core::assign_at(flat, key.get(), {&source, {}}, std::nullopt, bounds), a.operation());
  Py_RETURN_NONE;
}

void combine(PyObject* array, PyObject* positions, const core::Input& value, core::Op op, const char* operation) {
  const Tensor& x = tensor_of(array);
  Key key;
  parse_key(positions, x.dl.device, key);
  const CriticalSection of_target(array);
  throw_if_bad(core::assign_at(x, key.get(), value, op), operation);
}

constexpr char kIndexCombine[] = "index_combine($module, x, key, values)\n--\n\n"
                                 "x[key] += values, where positions named more than once all count.";
PyObject* index_combine(PyObject*, const Call& a) {
  a.array(0);
  combine(a.given(0), a.given(1), a.operand(2), core::Op::kAdd, a.operation());
  Py_RETURN_NONE;
}

// -values, in a dtype.
Status negate(const core::Input& values, DType dtype, DLDevice device, Tensor& out) {
  core::Input operand = values;
  Tensor scalar;
  if (values.array == nullptr) {
    DLBRIDGE_TRY(core::make_array(scalar, dtype, {}, device));
    DLBRIDGE_TRY(core::assign(scalar, values, "negative"));
    operand = {&scalar, {}};
  }
  core::ElementwiseOptions options;
  options.dtype = &dtype;
  return core::elementwise(core::Op::kNegative, {&operand, 1}, options, out);
}

constexpr char kAt[] = "at()";
constexpr char kCombineAt[] = "combine_at($module, name, x, key, values)\n--\n\n"
                              "The method at() of the ufunc of that name, by one kernel: of add, subtract, maximum and "
                              "minimum, on the host of multiply, where the result has the dtype of x. False where "
                              "nothing was done.";
PyObject* combine_at(PyObject*, const Call& a) {
  using core::Op;
  constexpr Op kOps[] = {Op::kAdd, Op::kSubtract, Op::kMaximum, Op::kMinimum, Op::kMultiply};
  const std::string_view name = a.text(0);
  const auto* const op = std::ranges::find(kOps, name, [](Op each) { return core::info(each).name; });
  if (op == std::end(kOps)) Py_RETURN_FALSE;
  const Tensor& x = a.array(1);
  if (*op == Op::kMultiply && !is_host(x.dl.device)) Py_RETURN_FALSE;
  const DType dtype = core::dtype_of(x);
  core::Input values;
  Ref made;
  const Parsed parsed = parse_operand(a.given(3), values);
  if (parsed == Parsed::kError) checked(pardon_numpy(a.given(3)));
  if (parsed != Parsed::kYes) {
    made = owned(to_array(a.given(3), std::nullopt, x.dl.device, std::nullopt));
    values.array = &tensor_of(made.get());
  }
  const bool adds = *op == Op::kAdd || *op == Op::kSubtract;
  const core::Input operands[] = {{&x, {}}, values};
  if (core::result_type(operands) != dtype || (adds && core::is_bool(dtype))) Py_RETURN_FALSE;
  Tensor negative;
  if (*op == Op::kSubtract) {
    throw_if_bad(negate(values, dtype, x.dl.device, negative), a.operation());
    values = {&negative, {}};
  }
  combine(a.given(1), a.given(2), values, adds ? Op::kAdd : *op, a.operation());
  Py_RETURN_TRUE;
}

constexpr char kNonzero[] = "nonzero($module, x, /)\n--\n\nThe coordinates of the elements that are not zero.";
PyObject* nonzero(PyObject*, PyObject* object) {
  const Tensor& x = need_array(object, "nonzero()");
  if (x.dl.ndim == 0) throw_issue("nonzero()", ErrorCode::kMalformed, "the array has no axes. Use x.reshape(1)");
  std::vector<Tensor> coordinates(static_cast<std::size_t>(x.dl.ndim));
  throw_if_bad(core::nonzero(x, coordinates), "nonzero()");
  Ref tuple = owned(PyTuple_New(x.dl.ndim));
  for (std::size_t k = 0; k < coordinates.size(); ++k) {
    NewArray out;
    out.tensor() = std::move(coordinates[k]);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), out.commit());
  }
  return tuple.release();
}

constexpr char kNonzeroRows[] =
    "nonzero_rows($module, x)\n--\n\nWhat nonzero() gives as one array, a row for each axis.";
PyObject* nonzero_rows(PyObject*, const Call& a) {
  return make_result(a.operation(), [&](Tensor& out) { return core::nonzero_rows(a.array(0), out); });
}

constexpr char kSearchsorted[] = "searchsorted()";
constexpr char kSearchsortedFlat[] =
    "searchsorted_flat($module, sorted, values, right=False, from_end=False)\n--\n\n"
    "Where values go into a sorted 1-D array; from_end: how many elements come behind.";
PyObject* searchsorted_flat(PyObject*, const Call& a) {
  const Tensor* operands[] = {&a.array(0), &a.array(1)};
  const bool right = a.flag(2, false), from_end = a.flag(3, false);
  if (operands[0]->dl.ndim != 1 || !same_device(operands[0]->dl.device, operands[1]->dl.device))
    throw_issue(a.operation(), ErrorCode::kMalformed,
                "needs a sorted 1-D array and values on the same device, got " + core::describe(*operands[0]) +
                    " and " + core::describe(*operands[1]));
  const core::Input inputs[] = {{operands[0], {}}, {operands[1], {}}};
  const DType dtype = core::result_type(inputs);
  Tensor cast[2];
  for (std::size_t k = 0; k < std::size(operands); ++k) {
    if (core::dtype_of(*operands[k]) == dtype) continue;
    throw_if_bad(core::copy_as(*operands[k], dtype, core::CopyOrder::kKeep, cast[k]), a.operation());
    operands[k] = &cast[k];
  }
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::searchsorted(*operands[0], *operands[1], right, from_end, out); });
}

constexpr char kInterp[] = "interp()";
constexpr char kInterpolateOnHost[] = "interpolate_on_host($module, at, knots, values, left, right)\n--\n\n"
                                      "interp() of real host arrays, the ends plain numbers or None; None for others.";
PyObject* interpolate_on_host(PyObject*, const Call& a) {
  const Tensor* arrays[3];
  for (std::size_t k = 0; k < 3; ++k) {
    arrays[k] = host_array(a.given(k));
    if (arrays[k] == nullptr || core::is_complex(core::dtype_of(*arrays[k]))) Py_RETURN_NONE;
  }
  const auto& [at, knots, values] = arrays;
  if (knots->dl.ndim != 1 || values->dl.ndim != 1 || knots->size != values->size || knots->size == 0) Py_RETURN_NONE;
  std::optional<double> ends[2];
  for (std::size_t k = 0; k < 2; ++k) {
    PyObject* given = a[k + 3];
    if (given == nullptr) continue;
    if (!PyFloat_Check(given) && !PyLong_Check(given)) Py_RETURN_NONE;
    ends[k] = a.number(k + 3, 0);
  }
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::interpolate(*at, *knots, *values, ends[0], ends[1], out); });
}

}  // namespace

std::vector<PyType_Slot> subscript_slots() {
  return {slot<get_item>(Py_mp_subscript), slot<set_item>(Py_mp_ass_subscript), slot<length>(Py_mp_length),
          slot<length>(Py_sq_length),      slot<item_at>(Py_sq_item),           slot<iterate>(Py_tp_iter)};
}

void init_indexing(PyObject* module) {
  add_functions(
      module, {method<kTake, take>(), method<kPut, put>(), method<kIndexCombine, index_combine>(),
               method<kCombineAt, combine_at, kAt>(), method<kNonzero, nonzero>(), method<kNonzeroRows, nonzero_rows>(),
               method<kSearchsortedFlat, searchsorted_flat, kSearchsorted>(),
               method<kInterpolateOnHost, interpolate_on_host, kInterp>()});
}

}  // namespace dlbridge::py::nd
