// x[key], x[key] = value, len and iteration.
#include "ndarray/core/indexing.h"
#include "python/src/nd/array_type.h"

namespace dlbridge::py::nd {

namespace {

// A key with the arrays that were made for lists and NumPy arrays in it.
struct Key {
  core::IndexItem items[core::kMaxIndexItems];
  std::size_t count = 0;
  Ref made[core::kMaxIndexArrays];
  std::size_t made_count = 0;
  std::span<const core::IndexItem> get() const noexcept { return {items, count}; }
};

[[gnu::cold]] bool bad_item(PyObject* item) {
  raise("ndarray[key]", ErrorCode::kIndex,
        "only integers, slices, '...', None and integer or bool arrays are valid indices, got " + type_name(item));
  return false;
}

bool parse_bound(PyObject* bound, std::int64_t& value, bool& has) {
  has = bound != Py_None;
  if (!has) return true;
  Py_ssize_t out;
  if (!_PyEval_SliceIndex(bound, &out)) return false;  // clamps what does not fit, as for lists
  value = out;
  return true;
}

bool parse_slice(PyObject* object, core::IndexItem& out) {
  const auto* slice = reinterpret_cast<PySliceObject*>(object);
  bool has_step;
  out.kind = core::IndexItem::Kind::kSlice;
  out.step = 1;
  if (!parse_bound(slice->start, out.start, out.has_start) || !parse_bound(slice->stop, out.stop, out.has_stop) ||
      !parse_bound(slice->step, out.step, has_step))
    return false;
  if (out.step == 0) {
    raise("ndarray[key]", ErrorCode::kMalformed, "slice step cannot be zero");
    return false;
  }
  return true;
}

bool parse_integer(PyObject* object, core::IndexItem& out) {
  out.kind = core::IndexItem::Kind::kInteger;
  out.start = PyNumber_AsSsize_t(object, PyExc_IndexError);
  return out.start != -1 || PyErr_Occurred() == nullptr;
}

bool add_array(PyObject* array, core::IndexItem& out) {
  out.kind = core::IndexItem::Kind::kArray;
  out.array = &tensor_of(array);
  return true;
}

// Lists, NumPy arrays, bools and arrays of other frameworks become arrays on x's device.
[[gnu::cold]] bool convert_item(PyObject* object, DLDevice device, Key& key, core::IndexItem& out) {
  if (key.made_count == core::kMaxIndexArrays) return bad_item(object);
  const bool is_list = PyList_Check(object) || PyTuple_Check(object);
  const bool empty_list = is_list && PySequence_Size(object) == 0;
  if (!is_list && !PyBool_Check(object) && PyNumber_Check(object) == 0 && !PyObject_CheckBuffer(object) &&
      PyObject_HasAttrString(object, "__dlpack__") == 0)
    return bad_item(object);
  PyObject* array = to_array(object, empty_list ? std::optional(DType::kInt64) : std::nullopt, device, std::nullopt);
  if (array == nullptr) return false;
  key.made[key.made_count++] = Ref(array);
  return add_array(array, out);
}

bool parse_item(PyObject* object, DLDevice device, Key& key) {
  if (key.count == core::kMaxIndexItems) return bad_item(object);
  core::IndexItem& out = key.items[key.count++];
  out = core::IndexItem{};
  if (PySlice_Check(object)) return parse_slice(object, out);
  if (PyLong_CheckExact(object)) return parse_integer(object, out);
  if (object == Py_Ellipsis || object == Py_None) {
    out.kind = object == Py_None ? core::IndexItem::Kind::kNewAxis : core::IndexItem::Kind::kEllipsis;
    return true;
  }
  if (is_array(object)) return add_array(object, out);
  if (!PyBool_Check(object) && PyIndex_Check(object) && PyObject_HasAttrString(object, "__dlpack__") == 0)
    return parse_integer(object, out);  // NumPy's integer scalars among others
  return convert_item(object, device, key, out);
}

bool parse_key(PyObject* object, DLDevice device, Key& key) {
  if (!PyTuple_Check(object)) return parse_item(object, device, key);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(object); ++k)
    if (!parse_item(PyTuple_GET_ITEM(object, k), device, key)) return false;
  return true;
}

PyObject* get_item(PyObject* self, PyObject* object) noexcept {
  try {
    const Tensor& x = tensor_of(self);
    Key key;
    if (!parse_key(object, x.dl.device, key)) return nullptr;
    NewArray out;
    if (!out) return nullptr;
    const Status status =
        core::is_basic(key.get()) ? core::view_at(x, key.get(), out.tensor()) : core::gather_at(x, key.get(), out.tensor());
    return finish("ndarray[key]", status, out);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

int set_item(PyObject* self, PyObject* object, PyObject* value) noexcept {
  try {
    if (value == nullptr) {
      PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
      return -1;
    }
    const Tensor& x = tensor_of(self);
    Key key;
    core::Input input;
    Ref made;
    if (!parse_key(object, x.dl.device, key)) return -1;
    Parsed parsed = parse_operand(value, input);
    if (parsed == Parsed::kError) {
      PyErr_Clear();  // a NumPy array may be assigned from: that names both sides
      parsed = Parsed::kNo;
    }
    if (parsed == Parsed::kNo) {
      made = Ref(to_array(value, std::nullopt, x.dl.device, std::nullopt));
      if (!made) return -1;
      input.array = &tensor_of(made.get());
    } else if (input.array == nullptr && !input.scalar.strong && input.scalar.kind != core::ScalarKind::kInt) {
      input.scalar.strong = true;  // assignment casts: a float to an integer array truncates
    }
    return succeeded("ndarray[key] = value", core::assign_at(x, key.get(), input)) ? 0 : -1;
  } catch (...) {
    raise_current_exception();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) noexcept {
  const Tensor& x = tensor_of(self);
  if (x.dl.ndim > 0) return static_cast<Py_ssize_t>(x.dl.shape[0]);
  PyErr_SetString(PyExc_TypeError, "len() of an array of no axes");
  return -1;
}

PyObject* item_at(PyObject* self, Py_ssize_t i) noexcept {
  try {
    const Tensor& x = tensor_of(self);
    if (x.dl.ndim == 0) {
      PyErr_SetString(PyExc_TypeError, "iteration over an array of no axes");
      return nullptr;
    }
    core::IndexItem item;
    item.kind = core::IndexItem::Kind::kInteger;
    item.start = i;
    NewArray out;
    if (!out) return nullptr;
    return finish("ndarray[key]", core::view_at(x, {&item, 1}, out.tensor()), out);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* iterate(PyObject* self) noexcept {
  if (tensor_of(self).dl.ndim > 0) return PySeqIter_New(self);
  PyErr_SetString(PyExc_TypeError, "iteration over an array of no axes");
  return nullptr;
}

}  // namespace

PyType_Slot subscript_slots[] = {
    {Py_mp_subscript, slot_pointer(get_item)}, {Py_mp_ass_subscript, slot_pointer(set_item)},
    {Py_mp_length, slot_pointer(length)},      {Py_sq_length, slot_pointer(length)},
    {Py_sq_item, slot_pointer(item_at)},       {Py_tp_iter, slot_pointer(iterate)},
    {0, nullptr},
};

}  // namespace dlbridge::py::nd
