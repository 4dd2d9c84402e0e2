// Making arrays from Python values, from other frameworks, and on other devices. Those of a shape are in filled.cpp.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "dlbridge/validate.h"
#include "frameworks/nd.h"
#include "frameworks/numpy.h"
#include "ndarray/core/copy.h"
#include "ndarray/core/fill.h"
#include "ndarray/core/views.h"
#include "protocols/common/array_arguments.h"
#include "python/src/bridge.h"
#include "python/src/convert.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"
#include "python/src/nd/runtime/runtime.h"
#include "python/src/nd/sequences.h"

namespace dlbridge::py::nd {

PyObject* make_data_attribute(PyObject* array) {
  const Tensor& t = tensor_of(array);
  core::Storage* storage = core::storage_of(t);
  const auto offset = t.dl.data == nullptr ? 0 : static_cast<char*>(t.dl.data) - static_cast<char*>(storage->data);
  return make_memory_pointer(storage, offset);
}

namespace {

// ndarray(memptr=...). strides in bytes; null: dense.
Status wrap_memory(core::Storage* storage, void* pointer, DType dtype, const Shape& shape, const Shape* strides,
                   core::Order order, Tensor& out) {
  const Owner hold(storage, core::release_storage_owner);  // parse_memory_pointer gave a reference
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer) -
                                                reinterpret_cast<std::uintptr_t>(storage->data));
  if (strides == nullptr) return core::make_dense_at(*storage, offset, dtype, shape.get(), order, out);
  return core::make_strided(*storage, offset, dtype, shape.get(), strides->get(), out);
}

}  // namespace

PyObject* new_array(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  constexpr char kOperation[] = "ndarray()";
  if (type != array_types.base && type != array_types.host && type != array_types.cuda)
    throw_error(PyExc_TypeError, "%s: nd.ndarray cannot be subclassed and constructed; wrap an array instead",
                type->tp_name);
  PyObject *shape_object, *dtype_object = Py_None, *memptr = Py_None, *strides_object = Py_None;
  PyObject *order_object = Py_None, *device_object = Py_None;
  static const char* names[] = {"shape", "dtype", "memptr", "strides", "order", "device", nullptr};
  checked(PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO$O:ndarray", const_cast<char**>(names), &shape_object,
                                      &dtype_object, &memptr, &strides_object, &order_object, &device_object) != 0);
  const Shape shape = parse_shape(shape_object, kOperation);
  const DType kind = parse_dtype(dtype_object, kOperation).value_or(core::kDefaultFloat);
  const core::Order layout = parse_order(order_object, kOperation, 'C') == 'F' ? core::Order::kF : core::Order::kC;
  const std::optional<DLDevice> device = parse_device(device_object, kOperation);
  const Shape strides = strides_object == Py_None ? Shape() : parse_shape(strides_object, kOperation);
  if (memptr == Py_None) {
    return make_result(kOperation, [&](Tensor& out) -> Status {
      if (strides_object == Py_None) return core::make_array(out, kind, shape.get(), or_default(device), layout);
      Tensor dense;  // whose memory the strides must not lead out of
      DLBRIDGE_TRY(core::make_array(dense, kind, shape.get(), or_default(device), layout));
      return core::strided_view(dense, 0, kind, shape.get(), strides.get(), out);
    });
  }
  core::Storage* storage = nullptr;
  void* pointer = nullptr;
  if (!parse_memory_pointer(memptr, storage, pointer))
    throw_issue("memptr", ErrorCode::kWrongType, "got " + type_name(memptr) + ". Give a MemoryPointer");
  const Shape* given = strides_object == Py_None ? nullptr : &strides;
  return make_result(kOperation,
                     [&](Tensor& out) { return wrap_memory(storage, pointer, kind, shape, given, layout, out); });
}

namespace {

// Whether memory may be copied before it is an array's: never, only on its way from the host to a device, or always.
enum class Copies : std::uint8_t { kNever, kFromHost, kAlways };

// The tensor of any array. Where it is copied anyway, numbers in the other byte order or at odd addresses come as a
// copy that has been turned around; it is tried only where the array is refused as it is.
Ref read_source(PyObject* object, Copies copies) {
  constexpr char kOperation[] = "nd.asarray()";
  Ref tensor(read_any(object, kOperation));
  if (tensor) return tensor;
  if (copies == Copies::kNever || PyErr_ExceptionMatches(exceptions.exchange) == 0) throw PythonError();
  Ref refusal = take_exception();
  ReadOptions options;
  options.operation = kOperation;
  options.must_copy = true;
  bool swapped = false;
  tensor = Ref(read_unapplied(object, options, swapped));
  if (tensor && (copies == Copies::kAlways || is_host(as_tensor(tensor.get())->tensor.dl.device)))
    return owned(apply_options(std::move(tensor), options, swapped));
  set_exception(std::move(refusal));
  throw PythonError();
}

// What an object that speaks no protocol gives as its array where it is one of CuPy's friends; else the refusal again.
Ref array_within(PyObject* object) {
  if (PyErr_ExceptionMatches(exceptions.protocol) == 0) throw PythonError();
  Ref refusal = take_exception();
  if (PyObject_HasAttrString(object, "__cupy_get_ndarray__") != 0)
    return owned(PyObject_CallMethod(object, "__cupy_get_ndarray__", nullptr));
  set_exception(std::move(refusal));
  throw PythonError();
}

Ref adopt_any(PyObject* object, Copies copies = Copies::kNever) {
  if (is_array(object)) return Ref::borrow(object);
  Ref within;
  try {
    return owned(adopt(as_tensor(read_source(object, copies).get())));
  } catch (const PythonError&) {
    within = array_within(object);
  }
  if (is_array(within.get())) return within;
  return owned(adopt(as_tensor(read_source(within.get(), copies).get())));
}
PyObject* adopt_tensor(PyObject* tensor) noexcept {
  return guarded([=] { return adopt_any(tensor).release(); });
}
PyObject* make_ndarray(Tensor& tensor) { return adopt(tensor, std::move(tensor.owner), nullptr); }

}  // namespace

namespace {

// Where asarray() and array() bring an array: inside `with nd.cuda.Device(i):` to that device, if it lies on another
// GPU. Elsewhere it stays where it is.
DLDevice home_of(DLDevice device) {
  if (!is_cuda(device) || !inside_device_block()) return device;
  const DLDevice current = default_device();
  return is_cuda(current) && current.device_id != device.device_id ? current : device;
}

// Whether it is an array that stays there, which is seen at once.
bool is_at_home(PyObject* object) noexcept {
  return Py_TYPE(object) == array_types.host || (Py_TYPE(object) == array_types.cuda && !inside_device_block());
}

PyObject* convert(PyObject* object, std::optional<DType> dtype, std::optional<DLDevice> device,
                  std::optional<bool> copy, DLDevice (*home)(DLDevice)) {
  if (PyFloat_CheckExact(object) || PyLong_Check(object) || PyComplex_CheckExact(object) || is_sequence(object)) {
    if (is_sequence(object) && holds_array(object)) return from_arrays(object, dtype, device);
    if (copy == std::optional(false))
      throw_issue("nd.asarray()", ErrorCode::kCopyRefused,
                  "Python values have no memory to share, and copy=False forbids a copy");
    return from_values(object, dtype, or_default(device));
  }
  if (!is_array(object) && !is_numpy_array(object)) {
    core::Input scalar;
    const Parsed parsed = parse_operand(object, scalar);  // NumPy's scalars have a buffer, too, but a byte-sized one
    if (parsed == Parsed::kYes) return from_values(object, dtype, or_default(device));
    checked(parsed != Parsed::kError);
  }
  const bool to_device = !copy && !is_host(or_default(device));
  Ref array = adopt_any(object, copy == std::optional(true) ? Copies::kAlways
                                : to_device                 ? Copies::kFromHost
                                                            : Copies::kNever);
  const Tensor& t = tensor_of(array.get());
  const bool host_source = is_host(t.dl.device);
  const bool stays_home = !device && (is_array(object) || !host_source);
  const DLDevice target = stays_home ? home(t.dl.device) : or_default(device);
  const bool moves = !same_device(target, t.dl.device) && !(is_host(target) && host_source);
  const bool casts = dtype && *dtype != core::dtype_of(t);
  if (!moves && !casts && copy != std::optional(true)) return array.release();
  if (copy == std::optional(false))
    throw_issue("nd.asarray()", ErrorCode::kCopyRefused,
                std::string(moves ? "another device" : "another dtype") + " needs a copy, and copy=False forbids one");
  return make_result("nd.array()", [&](Tensor& out) -> Status {
    if (!moves) return core::copy_as(t, dtype.value_or(core::dtype_of(t)), core::CopyOrder::kKeep, out);
    if (!casts) return core::copy_to(t, target, out);
    Tensor moved;
    DLBRIDGE_TRY(core::copy_to(t, target, moved));
    return core::copy_as(moved, *dtype, core::CopyOrder::kKeep, out);
  });
}

DLDevice stay(DLDevice device) { return device; }

}  // namespace

PyObject* to_array(PyObject* object, std::optional<DType> dtype, std::optional<DLDevice> device,
                   std::optional<bool> copy) {
  return convert(object, dtype, device, copy, stay);
}

namespace {

// x, or a copy in that order: "C" or "F"; any other is that of x.
Ref ordered(Ref x, char order, std::optional<bool> copy) {
  const Tensor& t = tensor_of(x.get());
  if ((order != 'C' || core::is_c_contiguous(t)) && (order != 'F' || core::is_f_contiguous(t))) return x;
  if (copy == std::optional(false))
    throw_issue("nd.asarray()", ErrorCode::kCopyRefused,
                std::string("order '") + order + "' needs a copy, and copy=False forbids one");
  const core::CopyOrder to = order == 'C' ? core::CopyOrder::kC : core::CopyOrder::kF;
  return owned(make_result("nd.array()", [&](Tensor& out) { return core::copy_as(t, core::dtype_of(t), to, out); }));
}

// x with axes of extent 1 in front, so that it has `ndim` at least.
Ref deepened(Ref x, std::int64_t ndim) {
  const Tensor& t = tensor_of(x.get());
  if (t.dl.ndim >= ndim) return x;
  if (ndim > kMaxDims)
    throw_issue(
        "nd.array()", ErrorCode::kMalformed,
        "ndmin is " + std::to_string(ndim) + "; an array has " + std::to_string(kMaxDims) + " dimensions at most");
  Shape shape;
  shape.ndim = static_cast<int>(ndim);
  std::fill_n(shape.dims, ndim - t.dl.ndim, 1);
  std::copy_n(t.dl.shape, t.dl.ndim, shape.dims + (ndim - t.dl.ndim));
  return owned(make_result(
      "nd.array()", [&](Tensor& out) { return core::reshape(t, shape.get(), core::Order::kC, std::nullopt, out); }));
}

PyObject* converted(PyObject* object, std::optional<DType> dtype, std::optional<DLDevice> device,
                    std::optional<bool> copy, char order, std::int64_t ndmin = 0, bool blocking = false) {
  const bool is_ready = is_at_home(object) && !dtype && !device && copy != std::optional(true);
  Ref x = is_ready ? Ref::borrow(object) : owned(convert(object, dtype, device, copy, home_of));
  if (is_ready && order == 'K' && ndmin == 0) return x.release();
  x = deepened(ordered(std::move(x), order, copy), ndmin);
  if (blocking) {
    static PythonFunction wait_for("dlbridge.nd._creation", "_wait_for");
    wait_for(x.get());
  }
  return x.release();
}

constexpr char kArrayName[] = "nd.array()";
constexpr char kArray[] =
    "array($module, object, dtype=None, copy=True, order='K', ndmin=0, *, device=None, blocking=False)\n--\n\n"
    "A new array of the values of `object`: a scalar, nested sequences, or an array of any framework.\n\n"
    "dtype: of the result, the values' own by default. copy: True always copies, None where needed, False never (then\n"
    "ValueError where it would be). order: the memory layout, \"C\", \"F\", \"A\" or \"K\" (as the input lies). ndmin: "
    "at least\n"
    "this many dimensions, new ones in front. device: the current device by default. blocking: waits until the values "
    "are\n"
    "on the device.\n"
    "Raises TypeError for what speaks no protocol and ValueError for ragged sequences. Source: NumPy.";
PyObject* array(PyObject*, const Call& a) {
  // copy=None copies where it must, as asarray() does.
  const std::optional<bool> copy = a.given(2) == nullptr ? true : a.copy(2);
  return converted(a.given(0), a.dtype(1), a.device(5), copy, a.order(3, 'K'), a.integer(4, 0), a.flag(6, false));
}

// A function that most calls give an array alone, which is its result where `kIsReady` says so: before the arguments
// are looked at.
template <const auto& kDoc, auto kFunction, auto kIsReady, const auto& kOperation = kOwnName>
PyMethodDef method_of_ready() {
  const auto call = [](PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
    if (nargs == 1 && kwnames == nullptr && is_at_home(args[0]) && kIsReady(tensor_of(args[0])))
      return Ref::borrow(args[0]).release();
    return Method<kDoc, kFunction, kOperation>::call(self, args, nargs, kwnames);
  };
  PyMethodDef row = method<kDoc, kFunction, kOperation>();
  const _PyCFunctionFastWithKeywords plain = call;
  row.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plain));
  return row;
}
template <char order>
bool is_ready(const Tensor& x) noexcept {
  return order == 'K' || (x.dl.ndim > 0 && (order == 'C' ? core::is_c_contiguous(x) : core::is_f_contiguous(x)));
}

constexpr char kAsarrayName[] = "nd.asarray()";
constexpr char kAsarray[] =
    "asarray($module, obj, dtype=None, order=None, *, device=None, copy=None, blocking=False)\n--\n\n"
    "`obj` as an ndarray, without a copy where its memory can be shared.\n\n"
    "An ndarray of that dtype and device is returned itself; a NumPy array is moved to the device, or shared on the "
    "CPU;\n"
    "arrays of other frameworks are shared. Arguments and errors as for array(). Source: Array API 2024.12.";
PyObject* asarray(PyObject*, const Call& a) {
  return converted(a.given(0), a.dtype(1), a.device(3), a.copy(4), a.order(2, 'K'), 0, a.flag(5, false));
}

constexpr char kAsanyarray[] = "asanyarray($module, a, dtype=None, order=None, *, blocking=False)\n--\n\n"
                               "asarray(); there are no subclasses to keep.";
PyObject* asanyarray(PyObject*, const Call& a) {
  return converted(a.given(0), a.dtype(1), std::nullopt, std::nullopt, a.order(2, 'K'), 0, a.flag(3, false));
}

constexpr char kAscontiguousarray[] =
    "ascontiguousarray($module, a, dtype=None, *, device=None)\n--\n\n"
    "`a` as an array of at least one dimension that is dense in C order; itself if it already is.";
constexpr char kAsfortranarray[] =
    "asfortranarray($module, a, dtype=None, *, device=None)\n--\n\n"
    "`a` as an array of at least one dimension that is dense in Fortran order; itself if it already is.";
template <char order>
PyObject* in_order(PyObject*, const Call& a) {
  return converted(a.given(0), a.dtype(1), a.device(2), std::nullopt, order, 1);
}

constexpr char kFromDlpackName[] = "nd.from_dlpack()";
constexpr char kFromDlpack[] =
    "from_dlpack($module, x, /, *, device=None, copy=None)\n--\n\n"
    "The array behind any object with ``__dlpack__``, or a DLPack capsule, sharing its memory.\n\n"
    "device: to move it to. copy: True always, False never (CopyError, a BufferError, where it would be needed), None\n"
    "where needed: read-only memory is shared, and the array is read-only. Source: Array API 2024.12.";
PyObject* from_dlpack(PyObject*, const Call& a) {
  const std::optional<DLDevice> device = a.device(1);
  const std::optional<bool> copy = a.copy(2);
  Ref adopted = adopt_any(a.given(0));
  if (!device && copy != std::optional(true)) return adopted.release();  // it stays where it lies
  return to_array(adopted.get(), std::nullopt, device, copy);
}

constexpr char kFrombuffer[] = "frombuffer()";
constexpr char kFrombufferOnHost[] = "frombuffer_on_host($module, buffer, dtype, count, offset, device=None)\n--\n\n"
                                     "frombuffer() of bytes or a bytearray on the host, of which there are as many as "
                                     "are asked for; None for others.";
PyObject* frombuffer_on_host(PyObject*, const Call& a) {
  PyObject *buffer = a.given(0), *count = a.given(2), *offset = a.given(3);
  if ((!PyBytes_CheckExact(buffer) && !PyByteArray_CheckExact(buffer)) || !PyLong_CheckExact(count) ||
      !PyLong_CheckExact(offset) || a[1] == nullptr || !is_host(or_default(a.device(4))))
    Py_RETURN_NONE;
  const DTypeInfo& dtype = info(*a.dtype(1));
  const Ref bytes = owned(read_any(buffer, a.operation()));
  Tensor& t = as_tensor(bytes.get())->tensor;
  const std::int64_t first = a.integer(3, 0), wanted = a.integer(2, -1), available = t.size - first;
  const std::int64_t n = wanted < 0 ? available / dtype.itemsize : wanted;
  if (first < 0 || available < 0 || n < 1 || n > available / dtype.itemsize ||
      (wanted < 0 && available % dtype.itemsize != 0))
    Py_RETURN_NONE;
  t.dl.data = static_cast<char*>(t.dl.data) + first;
  t.dl.shape[0] = t.size = n;
  t.set_dtype(dtype);
  return is_aligned(t) ? adopt(as_tensor(bytes.get())) : Ref::borrow(Py_None).release();
}

constexpr char kToDevice[] =
    "to_device($module, x, device, /, *, stream=None)\n--\n\nThe array itself, or a copy on another device.";
PyObject* to_device(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const std::optional<DLDevice> given = a.device(1);
  const DLDevice device = or_default(given);
  if (same_device(x.dl.device, device)) return Ref::borrow(a.given(0)).release();
  return make_result(a.operation(), [&](Tensor& out) { return core::copy_to(x, device, out); });
}

constexpr char kToNumpy[] = "to_numpy($module, x, /)\n--\n\nA NumPy array; shares the memory of a host array.";
PyObject* to_numpy(PyObject*, PyObject* object) {
  constexpr char kOperation[] = "asnumpy()";
  const Tensor& x = need_array(object, kOperation);
  if (is_host(x.dl.device)) return frameworks::make_numpy(as_tensor(object), kOperation);
  const Ref host = owned(make_result(kOperation, [&](Tensor& out) { return core::copy_to(x, {kDLCPU, 0}, out); }));
  return frameworks::make_numpy(as_tensor(host.get()), kOperation);
}

constexpr char kDefaultDevice[] = "default_device($module)\n--\n\nWhere new arrays are made.";
PyObject* get_default_device(PyObject*) { return make_device(default_device()); }

}  // namespace

void init_creation(PyObject* module) {
  frameworks::adopt_as_ndarray = adopt_tensor;
  frameworks::make_ndarray = make_ndarray;
  add_functions(module,
                {method<kArray, array, kArrayName>(), method_of_ready<kAsarray, asarray, is_ready<'K'>, kAsarrayName>(),
                 method_of_ready<kAsanyarray, asanyarray, is_ready<'K'>>(),
                 method_of_ready<kAscontiguousarray, in_order<'C'>, is_ready<'C'>>(),
                 method_of_ready<kAsfortranarray, in_order<'F'>, is_ready<'F'>>(),
                 method<kFromDlpack, from_dlpack, kFromDlpackName>(),
                 method<kFrombufferOnHost, frombuffer_on_host, kFrombuffer>(), method<kToDevice, to_device>(),
                 method<kToNumpy, to_numpy>(), method<kDefaultDevice, get_default_device>()});
}

}  // namespace dlbridge::py::nd
