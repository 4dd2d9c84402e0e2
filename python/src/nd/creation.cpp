// Making arrays: empty ones, from Python values, from other frameworks, and on other devices.
#include <cstring>
#include <string>
#include <vector>

#include "ndarray/core/backend.h"
#include "ndarray/core/move.h"
#include "protocols/array_interface/array_interface.h"
#include "python/src/bridge.h"
#include "python/src/nd/array_type.h"
#include "python/src/nd/keywords.h"
#include "python/src/nd/runtime.h"

namespace dlbridge::py::nd {

PyObject* make_data_attribute(PyObject* array) noexcept {
  try {
    const Tensor& t = tensor_of(array);
    core::Storage* storage = core::storage_of(t);
    const auto offset = t.dl.data == nullptr ? 0 : static_cast<char*>(t.dl.data) - static_cast<char*>(storage->data);
    return make_memory_pointer(storage, offset);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

namespace {

using Args = PyObject* const*;

// ndarray(memptr=...): the memory must be large enough for the layout.
Status wrap_memory(core::Storage* storage, void* pointer, DType dtype, const Shape& shape, const Shape* strides,
                   core::Order order, Tensor& out) {
  const Owner hold(storage, core::release_storage_owner);  // parse_memory_pointer gave a reference
  std::int64_t size = 0, dense[kMaxDims];
  DLBRIDGE_TRY(core::count_elements(shape.get(), core::itemsize(dtype), size));
  std::int64_t next = 1;
  for (int k = 0; k < shape.ndim; ++k) {
    const int axis = order == core::Order::kC ? shape.ndim - 1 - k : k;
    dense[axis] = strides == nullptr ? next : strides->dims[axis] / core::itemsize(dtype);
    next *= std::max<std::int64_t>(shape.dims[axis], 1);
  }
  Tensor base;
  base.set_dtype(dlbridge::info(dtype));
  base.dl.data = pointer;
  base.dl.device = storage->device;
  DLBRIDGE_TRY(core::make_view(base, shape.get(), {dense, static_cast<std::size_t>(shape.ndim)}, 0, out));
  const core::ByteRange range = core::byte_range(out);
  const auto first = reinterpret_cast<std::uintptr_t>(storage->data);
  if (size != 0 && (range.first < first || range.last > first + storage->bytes))
    return malformed("memptr has " + std::to_string(first + storage->bytes - reinterpret_cast<std::uintptr_t>(pointer)) +
                     " bytes, the array needs " + std::to_string(range.last - range.first) + ". Allocate more");
  out.owner = core::share(storage);
  if (is_cuda(storage->device)) out.ready = Ordering::on_stream_of(&storage->stream);
  return {};
}

}  // namespace

PyObject* new_array(PyTypeObject* type, PyObject* args, PyObject* kwargs) noexcept {
  try {
    if (type != array_types.base && type != array_types.host && type != array_types.cuda)
      return PyErr_Format(PyExc_TypeError, "%s: nd.ndarray cannot be subclassed and constructed; wrap an array instead",
                          type->tp_name);
    PyObject *shape_object, *dtype_object = Py_None, *memptr = Py_None, *strides_object = Py_None, *order_object = Py_None;
    PyObject* device_object = Py_None;
    static const char* names[] = {"shape", "dtype", "memptr", "strides", "order", "device", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO$O:ndarray", const_cast<char**>(names), &shape_object,
                                     &dtype_object, &memptr, &strides_object, &order_object, &device_object))
      return nullptr;
    Shape shape, strides;
    std::optional<DType> dtype;
    char order = 'C';
    DLDevice device;
    if (!parse_shape(shape_object, "ndarray()", shape) || !parse_dtype(dtype_object, "ndarray()", dtype) ||
        !parse_order(order_object, "ndarray()", order) || !parse_device(device_object, "ndarray()", device) ||
        (strides_object != Py_None && !parse_shape(strides_object, "ndarray()", strides)))
      return nullptr;
    const DType kind = dtype.value_or(core::kDefaultFloat);
    const core::Order layout = order == 'F' ? core::Order::kF : core::Order::kC;
    NewArray out;
    if (!out) return nullptr;
    if (memptr == Py_None) {
      if (strides_object != Py_None)
        return PyErr_Format(PyExc_ValueError, "ndarray(): strides need memptr: a new array lies densely");
      return finish("ndarray()", core::make_array(out.tensor(), kind, shape.get(), device, layout), out);
    }
    core::Storage* storage = nullptr;
    void* pointer = nullptr;
    if (!parse_memory_pointer(memptr, storage, pointer)) return nullptr;
    const Shape* given = strides_object == Py_None ? nullptr : &strides;
    return finish("ndarray()", wrap_memory(storage, pointer, kind, shape, given, layout, out.tensor()), out);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

namespace {

PyObject* empty(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<4> a;
  Shape shape;
  std::optional<DType> dtype;
  char order = 'C';
  DLDevice device;
  if (!a.parse("empty()", {"shape", "dtype", "order", "device"}, 1, 3, args, nargs, kwnames) ||
      !parse_shape(a.values[0], "empty()", shape) || !parse_dtype(a[1], "empty()", dtype) ||
      !parse_order(a[2], "empty()", order) || (a[3] != nullptr && !parse_device(a[3], "empty()", device)))
    return nullptr;
  if (a[3] == nullptr) device = default_device();
  NewArray out;
  if (!out) return nullptr;
  return finish("empty()",
                core::make_array(out.tensor(), dtype.value_or(core::kDefaultFloat), shape.get(), device,
                                 order == 'F' ? core::Order::kF : core::Order::kC),
                out);
}

// --- from Python values -------------------------------------------------------------------------------------------------

// A nested sequence, flattened.
struct Nested {
  Shape shape;
  std::vector<core::Scalar> leaves;
  std::vector<Ref> alive;
};

bool ragged() {
  raise("nd.array()", ErrorCode::kMalformed,
        "the nested sequences have different lengths; an array needs the same at each depth");
  return false;
}

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object); }

bool collect(PyObject* object, int depth, Nested& out) {
  if (is_sequence(object)) {
    if (depth == kMaxDims) return ragged();
    const Ref fast(PySequence_Fast(object, "a sequence"));
    if (!fast) return false;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    if (depth == out.shape.ndim) {
      if (!out.leaves.empty()) return ragged();
      out.shape.dims[out.shape.ndim++] = n;
    } else if (out.shape.dims[depth] != n) {
      return ragged();
    }
    for (Py_ssize_t k = 0; k < n; ++k)
      if (!collect(PySequence_Fast_GET_ITEM(fast.get(), k), depth + 1, out)) return false;
    return true;
  }
  if (depth != out.shape.ndim) return ragged();
  core::Input input;
  const Parsed parsed = parse_operand(object, input);
  if (parsed == Parsed::kError) return false;
  if (parsed == Parsed::kNo) {
    PyErr_Format(PyExc_TypeError, "nd.array(): an element is %R; give numbers, nested sequences of numbers or arrays",
                 Py_TYPE(object));
    return false;
  }
  out.leaves.push_back(input.scalar);
  return true;
}

// A sequence that holds arrays is stacked by Python code.
bool holds_array(PyObject* object) {
  if (!is_sequence(object)) return !PyNumber_Check(object) || is_tensor(object) || PyObject_HasAttrString(object, "__dlpack__");
  if (PyRange_Check(object) || PySequence_Size(object) == 0) return false;
  const Ref first(PySequence_GetItem(object, 0));
  return first && !PyUnicode_Check(first.get()) && !PyFloat_Check(first.get()) && !PyLong_Check(first.get()) &&
         holds_array(first.get());
}

DType dtype_of_leaves(const std::vector<core::Scalar>& leaves) {
  if (leaves.empty()) return core::kDefaultFloat;
  bool any = false;
  DType out = DType::kBool;
  for (const core::Scalar& s : leaves) {
    DType t = s.strong ? s.dtype : core::default_dtype(s.kind);
    if (s.above_int64) t = DType::kUInt64;
    out = any ? core::promote(out, t) : t;
    any = true;
  }
  return out;
}

Status fill_leaves(const Nested& nested, DType dtype, Tensor& host) {
  DLBRIDGE_TRY(core::make_array(host, dtype, nested.shape.get(), {kDLCPU, 0}));
  auto* to = static_cast<unsigned char*>(host.dl.data);
  const auto item = static_cast<std::size_t>(host.itemsize());
  for (const core::Scalar& leaf : nested.leaves) {
    core::ScalarValue value;
    DLBRIDGE_TRY(core::write_scalar(leaf, dtype, value));
    std::memcpy(to, value.bytes, item);
    to += item;
  }
  return {};
}

PyObject* from_values(PyObject* object, std::optional<DType> dtype, DLDevice device) {
  Nested nested;
  if (!collect(object, 0, nested)) return nullptr;
  NewArray out;
  if (!out) return nullptr;
  Tensor host;
  Status status = fill_leaves(nested, dtype.value_or(dtype_of_leaves(nested.leaves)), host);
  if (status.ok() && is_host(device)) out.tensor() = std::move(host);
  else if (status.ok()) status = core::copy_to(host, device, out.tensor());
  return finish("nd.array()", status, out);
}

Ref adopt_any(PyObject* object) {
  if (is_array(object)) return Ref::borrow(object);
  const Ref tensor(read_any(object));
  return tensor ? Ref(adopt(as_tensor(tensor.get()))) : Ref();
}

}  // namespace

PyObject* to_array(PyObject* object, std::optional<DType> dtype, std::optional<DLDevice> device, std::optional<bool> copy) {
  if (PyFloat_CheckExact(object) || PyLong_Check(object) || PyComplex_CheckExact(object) || is_sequence(object)) {
    if (is_sequence(object) && holds_array(object))
      return call_python("dlbridge.nd._creation", "_stack_sequence",
                         Py_BuildValue("(ONN)", object, dtype ? make_dtype(to_dl(*dtype)) : Ref::borrow(Py_None).release(),
                                       device ? make_device(*device) : Ref::borrow(Py_None).release()));
    if (copy == std::optional(false)) {
      raise("nd.asarray()", ErrorCode::kCopyRefused, "Python values have no memory to share, and copy=False forbids a copy");
      return nullptr;
    }
    return from_values(object, dtype, device.value_or(default_device()));
  }
  core::Input scalar;
  if (!is_array(object)) {
    const Parsed parsed = parse_operand(object, scalar);  // NumPy's scalars have a buffer, too, but a byte-sized one
    if (parsed == Parsed::kYes) return from_values(object, dtype, device.value_or(default_device()));
    PyErr_Clear();
  }
  Ref array = adopt_any(object);
  if (!array) return nullptr;
  const Tensor& t = tensor_of(array.get());
  const bool host_source = is_host(t.dl.device);
  const DLDevice target = device.value_or(is_array(object) || !host_source ? t.dl.device : default_device());
  const bool moves = !same_device(target, t.dl.device) && !(is_host(target) && host_source);
  const bool casts = dtype && *dtype != core::dtype_of(t);
  if (!moves && !casts && copy != std::optional(true)) return array.release();
  if (copy == std::optional(false)) {
    raise("nd.asarray()", ErrorCode::kCopyRefused,
          std::string(moves ? "another device" : "another dtype") + " needs a copy, and copy=False forbids one");
    return nullptr;
  }
  NewArray out;
  if (!out) return nullptr;
  if (!moves)
    return finish("nd.array()", core::copy_as(t, dtype.value_or(core::dtype_of(t)), core::CopyOrder::kKeep, out.tensor()), out);
  Tensor moved;
  Status status = core::copy_to(t, target, casts ? moved : out.tensor());
  if (status.ok() && casts) status = core::copy_as(moved, *dtype, core::CopyOrder::kKeep, out.tensor());
  return finish("nd.array()", status, out);
}

namespace {

template <bool kCopies>
PyObject* array(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  constexpr const char* kName = kCopies ? "nd.array()" : "nd.asarray()";
  Arguments<4> a;
  std::optional<DType> dtype;
  DLDevice device{kDLCPU, 0};
  bool copy = kCopies;
  if (!a.parse(kName, {"obj", "dtype", "copy", "device"}, 1, 3, args, nargs, kwnames) ||
      !parse_dtype(a[1], kName, dtype) || (a[2] != nullptr && !parse_flag(a[2], kCopies, copy)) ||
      (a[3] != nullptr && !parse_device(a[3], kName, device)))
    return nullptr;
  // array(copy=None) and asarray() copy where they must; array(copy=False), as asarray(copy=False), never.
  std::optional<bool> policy;
  if (a[2] != nullptr) policy = copy;
  else if (kCopies && a.values[2] == nullptr) policy = true;
  return to_array(a.values[0], dtype, a[3] != nullptr ? std::optional(device) : std::nullopt, policy);
}

PyObject* from_dlpack(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<3> a;
  DLDevice device{kDLCPU, 0};
  bool copy = false;
  if (!a.parse("nd.from_dlpack()", {"x", "device", "copy"}, 1, 1, args, nargs, kwnames) ||
      (a[1] != nullptr && !parse_device(a[1], "nd.from_dlpack()", device)) || !parse_flag(a[2], false, copy))
    return nullptr;
  const Ref array = adopt_any(a.values[0]);  // also a capsule; where the object lies now
  if (!array) return nullptr;
  return to_array(array.get(), std::nullopt, a[1] != nullptr ? std::optional(device) : std::nullopt,
                  a[2] != nullptr ? std::optional(copy) : std::nullopt);
}

PyObject* to_device(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<3> a;
  const Tensor* x = nullptr;
  DLDevice device;
  if (!a.parse("to_device()", {"x", "device", "stream"}, 2, 2, args, nargs, kwnames) ||
      !need_array(a.values[0], "to_device()", x) || !parse_device(a.values[1], "to_device()", device))
    return nullptr;
  if (same_device(x->dl.device, device)) return Ref::borrow(a.values[0]).release();
  NewArray out;
  if (!out) return nullptr;
  return finish("to_device()", core::copy_to(*x, device, out.tensor()), out);
}

// to_numpy(x): a NumPy array; of a host array it shares the memory.
PyObject* to_numpy_array(PyObject*, PyObject* object) noexcept {
  try {
    const Tensor* x = nullptr;
    if (!need_array(object, "asnumpy()", x)) return nullptr;
    if (is_host(x->dl.device)) return array_interface::make_numpy(as_tensor(object));
    NewArray out;
    if (!out) return nullptr;
    const Ref host(finish("asnumpy()", core::copy_to(*x, {kDLCPU, 0}, out.tensor()), out));
    return host ? array_interface::make_numpy(as_tensor(host.get())) : nullptr;
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* get_default_device(PyObject*, PyObject*) noexcept { return make_device(default_device()); }

#define DLBRIDGE_ND_FUNCTION(function) as_c_function(guarded<function>), METH_FASTCALL | METH_KEYWORDS

PyMethodDef functions[] = {
    {"empty", DLBRIDGE_ND_FUNCTION(empty),
     "empty($module, shape, dtype=None, order='C', *, device=None)\n--\n\nAn array with uninitialised elements.\n\n"
     "shape: int or tuple. dtype: float64 where it is None. device: 'cpu', 'cuda', 'cuda:1', …; None: the current CUDA\n"
     "device, or the CPU where there is none. Raises MemoryError where there is no memory."},
    {"array", DLBRIDGE_ND_FUNCTION(array<true>),
     "array($module, obj, dtype=None, copy=True, *, device=None)\n--\n\nAn array of its own from numbers, nested sequences "
     "or any array of any framework."},
    {"asarray", DLBRIDGE_ND_FUNCTION(array<false>),
     "asarray($module, obj, dtype=None, copy=None, *, device=None)\n--\n\nAn array from anything; shares memory where dtype "
     "and device allow."},
    {"from_dlpack", DLBRIDGE_ND_FUNCTION(from_dlpack),
     "from_dlpack($module, x, /, *, device=None, copy=None)\n--\n\nAn array that shares the memory of x, by whichever protocol "
     "it has; also a capsule."},
    {"to_device", DLBRIDGE_ND_FUNCTION(to_device),
     "to_device($module, x, device, /, *, stream=None)\n--\n\nThe array itself, or a copy on another device."},
    {"to_numpy", to_numpy_array, METH_O, "to_numpy($module, x, /)\n--\n\nA NumPy array; shares the memory of a host array."},
    {"default_device", get_default_device, METH_NOARGS, "default_device($module)\n--\n\nWhere new arrays are made."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_creation(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace dlbridge::py::nd
