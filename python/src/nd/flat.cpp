// ndarray.flat, the elements in C order by one number: on the host in one call. Other arrays and keys, and the errors,
// are those of dlbridge/nd/_flat.py.
#include "ndarray/core/flat.h"

#include <cstring>

#include "ndarray/core/views.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

struct FlatObject {
  PyObject_HEAD PyObject* base;
  PyObject* rest;     // of an array that is not on the host: an iterator over what its elements were
  std::int64_t next;  // on the host: the place of the next one
};
PyTypeObject* flat_type;

FlatObject* as_flat(PyObject* object) noexcept { return reinterpret_cast<FlatObject*>(object); }
const Tensor& elements_of(PyObject* self) noexcept { return tensor_of(as_flat(self)->base); }

PyObject* element_at(const Tensor& x, std::int64_t place) {
  return make_result("ndarray.flat", [&](Tensor& out) -> Status {
    DLBRIDGE_TRY(core::make_array(out, core::dtype_of(x), {}, x.dl.device));
    std::memcpy(out.dl.data, static_cast<const char*>(x.dl.data) + core::flat_offset(x, place),
                static_cast<std::size_t>(x.itemsize()));
    return {};
  });
}

void refuse_new_axis(PyObject* key) {
  if (key == Py_None)
    throw_error(PyExc_IndexError,
                "flat[None]: elements in one row get no new axis; give a number, a slice, or arrays of them");
}

Ref copy_of(const Tensor& x) {
  return owned(
      make_result("ndarray.flat", [&](Tensor& out) { return core::flatten(x, core::CopyOrder::kC, true, out); }));
}

PyObject* get_item(PyObject* self, PyObject* key) {
  refuse_new_axis(key);
  const Tensor& x = elements_of(self);
  std::int64_t place = 0;
  if (is_host(x.dl.device) && parse_place(key, x.size, false, place)) return element_at(x, place);
  const Ref line = owned(
      make_result("ndarray.flat", [&](Tensor& out) { return core::flatten(x, core::CopyOrder::kC, false, out); }));
  Ref chosen = owned(PyObject_GetItem(line.get(), key));
  const Tensor& t = tensor_of(chosen.get());
  if (core::owns_memory(t)) return chosen.release();  // by an array
  return make_result("ndarray.flat",
                     [&](Tensor& out) { return core::copy_as(t, core::dtype_of(t), core::CopyOrder::kC, out); });
}

// False for keys that are left to Python, and for those that name what is not there.
bool parse_places(PyObject* key, std::int64_t size, core::FlatPlaces& out) {
  if (PySlice_Check(key)) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    checked(PySlice_Unpack(key, &start, &stop, &step));
    out.count = PySlice_AdjustIndices(size, &start, &stop, step);
    out.first = start;
    out.step = step;
    return true;
  }
  out.count = 1;
  if (parse_place(key, size, false, out.first)) return true;
  const Tensor* positions = host_array(key);
  bool found = false;
  if (positions != nullptr && core::is_integer(core::dtype_of(*positions)))
    throw_if_bad(core::list_places(*positions, size, out, found), "ndarray.flat");
  return found;
}

// False where the value is left to Python. `made` keeps the array of a sequence.
bool parse_value(PyObject* value, PyObject* base, core::Input& out, Ref& made) {
  static PythonFunction as_values("dlbridge.nd._arguments", "as_values");
  if (PyList_Check(value) || PyTuple_Check(value)) {
    made = as_values(value, base);
    value = made.get();
  }
  const Parsed parsed = parse_operand(value, out);
  if (parsed == Parsed::kError) checked(pardon_numpy(value));
  if (parsed != Parsed::kYes) return false;
  core::ScalarValue unused;
  if (out.array == nullptr) return core::write_scalar(out.scalar, core::dtype_of(tensor_of(base)), unused).ok();
  return is_host(out.array->dl.device) && out.array->size > 0;
}

bool write_on_host(PyObject* base, PyObject* key, PyObject* value) {
  const Tensor* x = host_array(base);
  if (x == nullptr || x->readonly()) return false;
  core::FlatPlaces places;
  core::Input values;
  Ref made;
  if (!parse_places(key, x->size, places) || !parse_value(value, base, values, made)) return false;
  const CriticalSection of_target(base);
  throw_if_bad(core::write_flat(*x, places, values), "ndarray.flat");
  return true;
}

void write(PyObject* base, PyObject* key, PyObject* value) {
  static PythonFunction in_python("dlbridge.nd._flat", "write");
  refuse_new_axis(key);
  if (!write_on_host(base, key, value)) in_python(base, key, value);
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  if (value == nullptr) throw_error(PyExc_TypeError, "elements of an array cannot be deleted");
  write(as_flat(self)->base, key, value);
  return 0;
}

PyObject* next_element(PyObject* object) {
  FlatObject* self = as_flat(object);
  const Tensor& x = elements_of(object);
  const CriticalSection own(object);
  if (is_host(x.dl.device)) {
    if (self->next >= x.size) return nullptr;
    const std::int64_t offset = core::flat_offset(x, self->next++);
    return scalar_to_python(core::read_scalar(static_cast<const char*>(x.dl.data) + offset, core::dtype_of(x)));
  }
  if (self->rest == nullptr) {
    const Ref values = owned(PyObject_CallMethod(copy_of(x).get(), "tolist", nullptr));
    self->rest = checked(PyObject_GetIter(values.get()));
  }
  return PyIter_Next(self->rest);
}

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(elements_of(self).size); }
PyObject* itself(PyObject* self) { return Ref::borrow(self).release(); }
PyObject* get_base(PyObject* self) { return Ref::borrow(as_flat(self)->base).release(); }

constexpr char kCopy[] = "copy($self, /)\n--\n\nThe elements as a new vector.";
PyObject* copy(PyObject* self) { return copy_of(elements_of(self)).release(); }

constexpr char kToNumpy[] = "__array__($self, dtype=None, copy=None)\n--\n\nThe elements as a NumPy array.";
PyObject* to_numpy(PyObject* self, const Call& a) {
  return PyObject_CallMethod(copy_of(elements_of(self)).get(), "__array__", "O",
                             a.given(0) == nullptr ? Py_None : a.given(0));
}

void flat_dealloc(PyObject* object) noexcept {
  PyTypeObject* type = Py_TYPE(object);
  Py_DECREF(as_flat(object)->base);
  Py_XDECREF(as_flat(object)->rest);
  type->tp_free(object);
  Py_DECREF(type);
}

constexpr char kFlatDoc[] =
    "The elements of an array, `base`, by one number in C order: read as copies, written in place.\n\n"
    "As an iterator it gives Python numbers; of a device those that the array had when the first was asked for. "
    "Source: NumPy.";

constexpr char kFlatOf[] = "flat_of($module, x, /)\n--\n\nndarray.flat";
PyObject* flat_of(PyObject*, PyObject* x) {
  need_array(x, "ndarray.flat");
  FlatObject* self = PyObject_New(FlatObject, flat_type);
  checked(self != nullptr);
  self->base = Ref::borrow(x).release();
  self->rest = nullptr;
  self->next = 0;
  return reinterpret_cast<PyObject*>(self);
}

constexpr char kSetFlat[] = "set_flat($module, x, value, /)\n--\n\nx.flat = value";
PyObject* set_flat(PyObject*, const Call& a) {
  const Ref all = owned(PySlice_New(nullptr, nullptr, nullptr));
  need_array(a.given(0), "ndarray.flat");
  write(a.given(0), all.get(), a.given(1));
  Py_RETURN_NONE;
}

}  // namespace

void init_flat(PyObject* module) {
  flat_type = add_type(
      module, "dlbridge.nd.flatiter", sizeof(FlatObject), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      {slot<get_item>(Py_mp_subscript), slot<set_item>(Py_mp_ass_subscript), slot<length>(Py_mp_length),
       slot<itself>(Py_tp_iter), slot<next_element>(Py_tp_iternext), slot<flat_dealloc>(Py_tp_dealloc),
       getters_slot({getter<get_base>("base", "ndarray: whose elements they are.")}),
       methods_slot({method<kCopy, copy>(), method<kToNumpy, to_numpy>()}), doc_slot(kFlatDoc)});
  add_functions(module, {method<kFlatOf, flat_of>(), method<kSetFlat, set_flat>()});
}

}  // namespace dlbridge::py::nd
