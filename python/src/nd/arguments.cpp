// Operands, dtypes, shapes, axes and devices as Python gives them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "frameworks/numpy.h"
#include "frameworks/samples.h"
#include "protocols/common/array_arguments.h"
#include "python/src/bridge.h"
#include "python/src/nd/array.h"

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
// scalar of a type. The types are NumPy's static ones and live as long as the process. The GIL guards the table.
struct LearnedScalars {
  static constexpr int kCapacity = 16;
  struct Entry {
    PyTypeObject* type;
    DType dtype;
  };
  Entry entries[kCapacity];
  int count = 0;

  const Entry* find(PyTypeObject* type) const noexcept {
    for (int k = 0; k < count; ++k)
      if (entries[k].type == type) return &entries[k];
    return nullptr;
  }
};
LearnedScalars learned_scalars;

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
  if (!frameworks::may_learn() || !is_static || learned_scalars.count == LearnedScalars::kCapacity ||
      static_cast<std::size_t>(type->tp_basicsize) < sizeof(PyObject) + item ||
      !core::write_scalar(scalar, scalar.dtype, value).ok() ||
      std::memcmp(value.bytes, scalar_value(object), item) != 0)
    return;
  learned_scalars.entries[learned_scalars.count++] = {type, scalar.dtype};
}

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
  if (!parse_dtype(dtype.get(), "ndarray", parsed)) return pardon(PyExc_TypeError) ? Parsed::kNo : Parsed::kError;
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

bool need_operand(PyObject* object, const char* operation, core::Input& out) {
  const Parsed parsed = parse_operand(object, out);
  if (parsed == Parsed::kNo)
    PyErr_Format(PyExc_TypeError, "%s: Unsupported type %R; give an nd array or a Python scalar", operation,
                 Py_TYPE(object));
  return parsed == Parsed::kYes;
}

bool need_array(PyObject* object, const char* operation, const Tensor*& out) {
  if (is_array(object)) [[likely]] {
    out = &tensor_of(object);
    return true;
  }
  PyErr_Format(PyExc_TypeError, "%s: Unsupported type %R; give an nd array (nd.asarray(x) makes one)", operation,
               Py_TYPE(object));
  return false;
}

namespace {
std::optional<DType> dtype_by_name(PyObject* name) {
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  const DTypeInfo* row = text == nullptr ? nullptr : find_dtype_by_name({text, static_cast<std::size_t>(size)});
  return row != nullptr && core::is_supported(row->id) ? std::optional(row->id) : std::nullopt;
}

bool refuse_dtype(PyObject* object, const char* operation) {
  PyErr_Format(PyExc_TypeError,
               "%s: dtype %R is none of nd's: bool, int8 to int64, uint8 to uint64, float16, bfloat16, "
               "float32, float64, complex64, complex128",
               operation, object);
  return false;
}
}  // namespace

bool parse_dtype(PyObject* object, const char* operation, std::optional<DType>& out) {
  out.reset();
  if (object == nullptr || object == Py_None) return true;
  if (DLDataType dl; read_dtype(object, dl)) {
    const DTypeInfo* row = find_dtype(dl);
    if (row == nullptr || !core::is_supported(row->id)) return refuse_dtype(object, operation);
    out = row->id;
    return true;
  }
  if (PyUnicode_Check(object)) {
    out = dtype_by_name(object);
    if (out) return true;
    if (PyErr_Occurred() != nullptr && !pardon(PyExc_UnicodeError)) return false;
  }
  if (frameworks::connect_numpy() && frameworks::numpy_array_type != nullptr)
    if (const DTypeInfo* plain = frameworks::find_plain_dtype(object);
        plain != nullptr && core::is_supported(plain->id)) {
      out = plain->id;
      return true;
    }
  PyErr_Clear();
  const Ref resolved(call_python("dlbridge.nd._dtypes", "resolve", PyTuple_Pack(1, object)));
  if (!resolved) return false;
  DLDataType dl;
  const DTypeInfo* row = read_dtype(resolved.get(), dl) ? find_dtype(dl) : nullptr;
  if (row == nullptr || !core::is_supported(row->id)) return refuse_dtype(object, operation);
  out = row->id;
  return true;
}

bool parse_shape_items(PyObject* const* items, Py_ssize_t count, const char* operation, Shape& out) {
  DimsArgument parsed;
  if (Status why; !parse_dims(items, count, "shape", parsed, why, "Give ints")) {
    raise_refusal(operation, why);
    return false;
  }
  std::copy_n(parsed.values, count, out.dims);
  out.ndim = static_cast<int>(count);
  return true;
}

bool parse_shape(PyObject* object, const char* operation, Shape& out) {
  const bool plain = PyTuple_Check(object) || PyList_Check(object);
  if (!plain && PyIndex_Check(object)) return parse_shape_items(&object, 1, operation, out);
  const Ref tuple(plain ? fixed_items(object) : Ref(PySequence_Tuple(object)));
  return tuple && parse_shape_items(PySequence_Fast_ITEMS(tuple.get()), PyTuple_GET_SIZE(tuple.get()), operation, out);
}

bool parse_axis(PyObject* object, int ndim, const char* operation, int& axis) {
  const Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_IndexError);
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  if (value < -ndim || value >= ndim) {
    const Ref error(
        call_python("dlbridge.nd._arguments", "axis_error", Py_BuildValue("(sni)", operation, value, ndim)));
    if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
    return false;
  }
  axis = static_cast<int>(value < 0 ? value + ndim : value);
  return true;
}

bool parse_axes(PyObject* object, int ndim, const char* operation, std::uint64_t& mask) {
  if (object == nullptr || object == Py_None) {
    mask = ndim == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ndim) - 1;
    return true;
  }
  mask = 0;
  if (!PyTuple_Check(object) && !PyList_Check(object)) {
    int axis = 0;
    if (!parse_axis(object, ndim, operation, axis)) return false;
    mask = std::uint64_t{1} << axis;
    return true;
  }
  const Ref axes = fixed_items(object);
  if (!axes) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(axes.get()); ++k) {
    int axis = 0;
    if (!parse_axis(PyTuple_GET_ITEM(axes.get(), k), ndim, operation, axis)) return false;
    const std::uint64_t one = std::uint64_t{1} << axis;
    if ((mask & one) != 0) {
      raise(operation, ErrorCode::kMalformed, "axis " + std::to_string(axis) + " is given twice");
      return false;
    }
    mask |= one;
  }
  return true;
}

bool parse_device(PyObject* object, const char* operation, DLDevice& out) {
  std::optional<DLDevice> parsed;
  PyObject* plain = object;
  const Ref id(object != nullptr && object != Py_None && PyObject_HasAttrString(object, "_dlbridge_device") != 0
                   ? PyObject_GetAttrString(object, "_dlbridge_device")  // nd.cuda.Device
                   : nullptr);
  if (id) plain = id.get();
  if (!parse_device_argument(plain, operation, parsed)) return false;
  out = parsed ? *parsed : default_device();
  const Status status = core::check_device(out);
  if (!status.ok()) raise(operation, status.issue());
  return status.ok();
}

bool parse_order(PyObject* object, const char* operation, char& out) {
  if (object == nullptr || object == Py_None) return true;
  for (const char letter : {'C', 'F', 'K', 'A'}) {
    const char upper[] = {letter, 0}, lower[] = {static_cast<char>(letter - 'A' + 'a'), 0};
    if (!PyUnicode_Check(object) ||
        (PyUnicode_CompareWithASCIIString(object, upper) != 0 && PyUnicode_CompareWithASCIIString(object, lower) != 0))
      continue;
    out = letter;
    return true;
  }
  PyErr_Format(PyExc_ValueError, "%s: order must be 'C', 'F', 'K' or 'A', got %R", operation, object);
  return false;
}

bool parse_casting(PyObject* object, const char* operation, core::Casting& out) {
  if (object == nullptr) return true;
  using core::Casting;
  for (const Casting casting : {Casting::kNo, Casting::kEquiv, Casting::kSafe, Casting::kSameKind, Casting::kUnsafe}) {
    if (!PyUnicode_Check(object) || PyUnicode_CompareWithASCIIString(object, core::name_of(casting).data()) != 0)
      continue;
    out = casting;
    return true;
  }
  PyErr_Format(PyExc_ValueError, "%s: casting must be 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', got %R",
               operation, object);
  return false;
}

PyObject* element_to_python(const Tensor& t) {
  core::Scalar s;
  throw_if_bad(core::read_element(t, s), "ndarray.item()");
  switch (s.kind) {
    case core::ScalarKind::kBool: return PyBool_FromLong(s.i != 0);
    case core::ScalarKind::kInt:
      return s.above_int64 ? PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(s.i))
                           : PyLong_FromLongLong(s.i);
    case core::ScalarKind::kFloat: return PyFloat_FromDouble(s.re);
    default: return PyComplex_FromDoubles(s.re, s.im);
  }
}

}  // namespace dlbridge::py::nd
