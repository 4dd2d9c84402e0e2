// Operands, dtypes, shapes, axes and devices as Python gives them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "frameworks/numpy.h"
#include "frameworks/samples.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/threads.h"
#include "python/src/bridge.h"
#include "python/src/nd/array.h"
#include "python/src/spellings.h"

#include "ndarray/core/backend.h"
#include "ndarray/core/copy.h"

namespace dlbridge::py::nd {

PyObject* call_python(const char* module, const char* function, PyObject* args) {
  const Ref owner(args);
  const Ref imported(PyImport_ImportModule(module));
  const Ref callable(imported ? PyObject_GetAttrString(imported.get(), function) : nullptr);
  return callable && owner ? PyObject_CallObject(callable.get(), owner.get()) : nullptr;
}

bool is_numpy_array(PyObject* object) {
  if (!frameworks::connect_numpy()) PyErr_Clear();
  return frameworks::numpy_array_type != nullptr && PyObject_TypeCheck(object, frameworks::numpy_array_type);
}

bool pardon_numpy(PyObject* object) {
  if (!is_numpy_array(object)) return false;
  PyErr_Clear();
  return true;
}

namespace {

// Whether the error that is set is one that says "this is no such object": then it is cleared. Any other is the user's,
// an interrupt for one, and passes through.
bool pardon(PyObject* type) {
  if (PyErr_ExceptionMatches(type) == 0) return false;
  PyErr_Clear();
  return true;
}

bool parse_long(PyObject* number, core::Scalar& out) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) [[likely]] {
    if (value == -1 && PyErr_Occurred() != nullptr) return false;
    out = core::Scalar::of_int(value);
    return true;
  }
  out = core::Scalar::of_int(0);
  out.re = PyLong_AsDouble(number);
  if (PyErr_Occurred() != nullptr) {  // past the doubles, too
    PyErr_Clear();
    out.re = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
  }
  out.huge = true;
  if (overflow < 0) return true;
  const unsigned long long wide = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return true;
  }
  out.huge = false;
  out.above_int64 = true;
  out.i = static_cast<std::int64_t>(wide);
  return true;
}

Parsed parse_python_scalar(PyObject* object, core::Scalar& out) {
  if (PyFloat_Check(object)) out = core::Scalar::of_float(PyFloat_AS_DOUBLE(object));
  else if (PyBool_Check(object)) out = core::Scalar::of_bool(object == Py_True);
  else if (PyLong_Check(object)) return parse_long(object, out) ? Parsed::kYes : Parsed::kError;
  else if (PyComplex_Check(object)) {
    const Py_complex c = PyComplex_AsCComplex(object);
    out = core::Scalar::of_complex(c.real, c.imag);
  } else return Parsed::kNo;
  return Parsed::kYes;
}

// NumPy's scalar types whose value is known to lie right behind the object's head: learned, and checked, on the first
// scalar of a type. The types are NumPy's static ones and live as long as the process. What is in the table stays.
struct LearnedScalars {
  static constexpr int kCapacity = 16;
  struct Entry {
    PyTypeObject* type;
    DType dtype;
  };
  Entry entries[kCapacity] = {};
  Atomic<int> count;
  Mutex adding;

  const Entry* find(PyTypeObject* type) const noexcept {
    const int known = count;
    for (int k = 0; k < known; ++k)
      if (entries[k].type == type) return &entries[k];
    return nullptr;
  }
  void add(const Entry& entry) noexcept {
    const MutexHold hold(adding);
    const int known = count;
    if (known == kCapacity || find(entry.type) != nullptr) return;
    entries[known] = entry;
    count.store(known + 1);
  }
};
constinit LearnedScalars learned_scalars;

const void* scalar_value(PyObject* object) noexcept { return reinterpret_cast<const char*>(object) + sizeof(PyObject); }

bool read_learned_scalar(PyObject* object, core::Scalar& out) noexcept {
  const LearnedScalars::Entry* entry = learned_scalars.find(Py_TYPE(object));
  if (entry == nullptr) return false;
  out = core::read_scalar(scalar_value(object), entry->dtype);
  out.strong = true;
  out.dtype = entry->dtype;
  return true;
}

void learn_scalar(PyObject* object, const core::Scalar& scalar) {
  PyTypeObject* type = Py_TYPE(object);
  const auto item = static_cast<std::size_t>(core::itemsize(scalar.dtype));
  const bool is_static = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 && std::strncmp(type->tp_name, "numpy.", 6) == 0;
  core::ScalarValue value;
  if (!frameworks::may_learn() || !is_static ||
      static_cast<std::size_t>(type->tp_basicsize) < sizeof(PyObject) + item ||
      !core::write_scalar(scalar, scalar.dtype, value).ok() ||
      std::memcmp(value.bytes, scalar_value(object), item) != 0)
    return;
  learned_scalars.add({type, scalar.dtype});
}

bool read_any_dtype(PyObject* object, const char* operation, std::optional<DType>& out);

// NumPy's and ml_dtypes' scalars: they have a dtype and item(). Their dtype takes part in promotion.
[[gnu::cold, gnu::noinline]] Parsed parse_numpy_scalar(PyObject* object, core::Scalar& out) {
  if (is_numpy_array(object)) {
    PyErr_Format(PyExc_TypeError, "Unsupported type %R", Py_TYPE(object));
    return Parsed::kError;
  }
  const Ref shape(PyObject_GetAttrString(object, "shape"));
  if (!shape)  // the stand-ins of nd.fuse refuse to have one by a TypeError
    return pardon(PyExc_AttributeError) || pardon(PyExc_TypeError) ? Parsed::kNo : Parsed::kError;
  if (!PyTuple_Check(shape.get()) || PyTuple_GET_SIZE(shape.get()) != 0 || is_tensor(object) ||
      PyObject_HasAttrString(object, "__dlpack__") != 0)
    return Parsed::kNo;
  const Ref dtype(PyObject_GetAttrString(object, "dtype"));
  if (!dtype) return pardon(PyExc_AttributeError) ? Parsed::kNo : Parsed::kError;
  std::optional<DType> parsed;
  if (!read_any_dtype(dtype.get(), "ndarray", parsed)) return pardon(PyExc_TypeError) ? Parsed::kNo : Parsed::kError;
  const Ref item(PyObject_GetAttrString(object, "item"));
  if (!item) return pardon(PyExc_AttributeError) ? Parsed::kNo : Parsed::kError;
  if (!parsed) return Parsed::kNo;
  const Ref value(outlive_thread_exit([&] { return PyObject_CallNoArgs(item.get()); }));
  if (!value) return Parsed::kError;
  const Ref number(PyFloat_Check(value.get()) || PyComplex_Check(value.get()) || PyLong_Check(value.get())
                       ? Ref::borrow(value.get()).release()
                       : PyNumber_Float(value.get()));
  if (!number) return pardon(PyExc_TypeError) ? Parsed::kNo : Parsed::kError;
  const Parsed result = parse_python_scalar(number.get(), out);
  out.strong = true;
  out.dtype = *parsed;
  if (result == Parsed::kYes) learn_scalar(object, out);
  return result;
}

}  // namespace

Parsed parse_operand(PyObject* object, core::Input& out) {
  if (PyTypeObject* type = Py_TYPE(object); type == array_types.host || type == array_types.cuda) [[likely]] {
    out.array = &tensor_of(object);
    return Parsed::kYes;
  }
  if (read_learned_scalar(object, out.scalar)) return Parsed::kYes;
  const Parsed parsed = parse_python_scalar(object, out.scalar);
  if (parsed == Parsed::kNo || (parsed == Parsed::kYes && !PyFloat_CheckExact(object) && !PyLong_CheckExact(object) &&
                                !PyBool_Check(object) && !PyComplex_CheckExact(object))) {
    if (PyType_IsSubtype(Py_TYPE(object), array_types.base)) {
      out.array = &tensor_of(object);
      return Parsed::kYes;
    }
    const Parsed numpy = parse_numpy_scalar(object, out.scalar);  // numpy.float64 is a float, too
    return numpy == Parsed::kNo ? parsed : numpy;
  }
  return parsed;
}

core::Input need_operand(PyObject* object, const char* operation) {
  core::Input out;
  const Parsed parsed = parse_operand(object, out);
  checked(parsed != Parsed::kError);
  if (parsed == Parsed::kNo)
    throw_error(PyExc_TypeError, "%s: Unsupported type %R; give an nd array or a Python scalar", operation,
                Py_TYPE(object));
  return out;
}

const Tensor& need_array(PyObject* object, const char* operation) {
  if (is_array(object)) [[likely]]
    return tensor_of(object);
  throw_error(PyExc_TypeError, "%s: Unsupported type %R; give an nd array (nd.asarray(x) makes one)", operation,
              Py_TYPE(object));
}

namespace {
std::optional<DType> supported(const DTypeInfo* row) noexcept {
  return row != nullptr && core::is_supported(row->id) ? std::optional(row->id) : std::nullopt;
}

std::optional<DType> dtype_by_name(PyObject* name) {
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  return text == nullptr ? std::nullopt : supported(find_dtype_by_name({text, static_cast<std::size_t>(size)}));
}

Spellings spellings;

// False with a Python error set.
bool read_any_dtype(PyObject* object, const char* operation, std::optional<DType>& out) {
  DLDataType dl;
  const bool is_spelling = Spellings::can_have(object);
  if (PyUnicode_Check(object)) {
    out = dtype_by_name(object);
    if (out) return true;
    if (PyErr_Occurred() != nullptr && !pardon(PyExc_UnicodeError)) return false;
  }
  if (is_spelling) {
    if (out = spellings.find(object); out) return true;
    PyErr_Clear();
  }
  Ref resolved = Ref::borrow(object);
  if (!read_dtype(object, dl)) {
    if (frameworks::connect_numpy() && frameworks::numpy_array_type != nullptr)
      if (out = supported(frameworks::find_plain_dtype(object)); out) return true;
    PyErr_Clear();
    resolved = Ref(call_python("dlbridge.nd._dtypes", "resolve_other", PyTuple_Pack(1, object)));
    if (!resolved) return false;
  }
  if (read_dtype(resolved.get(), dl)) out = supported(find_dtype(dl));
  if (out && is_spelling) spellings.remember(object, *out);
  if (!out)
    PyErr_Format(PyExc_TypeError,
                 "%s: nd has no dtype %R; it has bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, "
                 "float64, complex64 and complex128",
                 operation, object);
  return out.has_value();
}
}  // namespace

std::optional<DType> parse_dtype(PyObject* object, const char* operation) {
  std::optional<DType> out;
  if (object != nullptr && object != Py_None) checked(read_any_dtype(object, operation, out));
  return out;
}

Shape parse_shape(PyObject* const* items, Py_ssize_t count, const char* operation) {
  DimsArgument parsed;
  if (Status why; !parse_dims(items, count, "shape", parsed, why, "Give ints")) {
    raise_refusal(operation, why);
    throw PythonError();
  }
  Shape out;
  std::copy_n(parsed.values, count, out.dims);
  out.ndim = static_cast<int>(count);
  return out;
}

Shape parse_shape(PyObject* object, const char* operation) {
  const bool plain = PyTuple_Check(object) || PyList_Check(object);
  if (!plain && PyIndex_Check(object)) return parse_shape(&object, 1, operation);
  if (object == Py_None)
    throw_error(PyExc_TypeError, "%s: the shape is None; give an int or a tuple of ints. Use () for a 0-d array",
                operation);
  const Ref tuple = plain ? fixed_items(object) : Ref(PySequence_Tuple(object));
  checked(tuple.get());
  return parse_shape(PySequence_Fast_ITEMS(tuple.get()), PyTuple_GET_SIZE(tuple.get()), operation);
}

core::Bounds parse_bounds(PyObject* mode, const char* operation) {
  const auto is = [mode](const char* name) { return PyUnicode_CompareWithASCIIString(mode, name) == 0; };
  if (mode == nullptr) return core::Bounds::kRefuse;
  if (PyUnicode_Check(mode)) {
    if (is("raise")) return core::Bounds::kRefuse;
    if (is("wrap")) return core::Bounds::kWrap;
    if (is("clip")) return core::Bounds::kClip;
  }
  throw_error(PyExc_ValueError, "%s: mode %R is unknown; give 'raise', 'wrap' or 'clip'", operation, mode);
}

int parse_axis(PyObject* object, int ndim, const char* operation) {
  const Py_ssize_t value = checked_number(PyNumber_AsSsize_t(object, PyExc_IndexError));
  if (value < -ndim || value >= ndim) {
    const Ref error =
        owned(call_python("dlbridge.nd._arguments", "axis_error", Py_BuildValue("(sni)", operation, value, ndim)));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
    throw PythonError();
  }
  return static_cast<int>(value < 0 ? value + ndim : value);
}

std::uint64_t parse_axes(PyObject* object, int ndim, const char* operation) {
  if (object == nullptr || object == Py_None) return ndim == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ndim) - 1;
  if (!PyTuple_Check(object) && !PyList_Check(object)) return std::uint64_t{1} << parse_axis(object, ndim, operation);
  const Ref axes = fixed_items(object);
  checked(axes.get());
  std::uint64_t mask = 0;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(axes.get()); ++k) {
    const int axis = parse_axis(PyTuple_GET_ITEM(axes.get(), k), ndim, operation);
    const std::uint64_t one = std::uint64_t{1} << axis;
    if ((mask & one) != 0)
      throw_issue(operation, ErrorCode::kMalformed, "axis " + std::to_string(axis) + " is given twice");
    mask |= one;
  }
  return mask;
}

std::optional<DLDevice> parse_device(PyObject* object, const char* operation) {
  if (object == nullptr || object == Py_None) return std::nullopt;
  const bool is_plain = is_device(object) || PyUnicode_CheckExact(object) || PyTuple_CheckExact(object);
  const Ref id(!is_plain && PyObject_HasAttrString(object, "_dlbridge_device") != 0
                   ? PyObject_GetAttrString(object, "_dlbridge_device")  // nd.cuda.Device
                   : nullptr);
  std::optional<DLDevice> out;
  checked(parse_device_argument(id ? id.get() : object, operation, out));
  if (out) throw_if_bad(core::check_device(*out), operation);
  return out;
}

namespace {
bool is_text(PyObject* object, const char* text) {
  return PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, text) == 0;
}
}  // namespace

char parse_order(PyObject* object, const char* operation, char otherwise) {
  if (object == nullptr || object == Py_None) return otherwise;
  for (const char* letter : {"C", "F", "K", "A"}) {
    const char lower[] = {static_cast<char>(*letter - 'A' + 'a'), 0};
    if (is_text(object, letter) || is_text(object, lower)) return *letter;
  }
  throw_error(PyExc_ValueError, "%s: order must be 'C', 'F', 'K' or 'A', got %R", operation, object);
}

core::Casting parse_casting(PyObject* object, const char* operation, core::Casting otherwise) {
  if (object == nullptr) return otherwise;
  using core::Casting;
  for (const Casting casting : {Casting::kNo, Casting::kEquiv, Casting::kSafe, Casting::kSameKind, Casting::kUnsafe})
    if (is_text(object, core::name_of(casting).data())) return casting;
  throw_error(PyExc_ValueError, "%s: casting must be 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', got %R", operation,
              object);
}

PyObject* element_to_python(const Tensor& t) {
  core::Scalar s;
  throw_if_bad(core::read_element(t, s), "ndarray.item()");
  return scalar_to_python(s);
}

}  // namespace dlbridge::py::nd
