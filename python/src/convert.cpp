// convert(): the consumers that C reaches directly (NumPy, and every type with a C exchange table that is known by
// name); the others, and everything that may need a copy, go to dlbridge/_convert.py.
#include <string>

#include "dlbridge/layout.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/common/errors.h"
#include "python/src/bridge.h"
#include "python/src/routes.h"

namespace dlbridge::py {

namespace {

constexpr char kOperation[] = "convert()";

// PyTorch's array type and table, once PyTorch is imported. The type is PyTorch's own and lives as long as it.
struct TorchConsumer {
  PyTypeObject* type = nullptr;
  const DLPackExchangeAPI* api = nullptr;
};
TorchConsumer torch_consumer;
PyObject* numpy_name;
PyObject* torch_name;

bool connect_torch() {
  if (torch_consumer.api != nullptr) return true;
  const Ref module(PyImport_GetModule(torch_name));
  const Ref type(module ? PyObject_GetAttrString(module.get(), "Tensor") : nullptr);
  PyErr_Clear();
  if (!type || !PyType_Check(type.get())) return false;
  torch_consumer.type = reinterpret_cast<PyTypeObject*>(type.get());
  torch_consumer.api = dlpack::find_exchange_api(torch_consumer.type);
  return torch_consumer.api != nullptr && torch_consumer.api->managed_tensor_to_py_object_no_sync != nullptr;
}

// What PyTorch takes as it is: writable, no negative strides, an ordinary dtype of its own.
bool torch_takes(const Tensor& tensor) noexcept {
  const DLDataType dtype = tensor.dl.dtype;
  const bool plain = dtype.code <= kDLBool && dtype.lanes == 1 && dtype.bits >= 8;
  const bool known_device = tensor.dl.device.device_type == kDLCPU || tensor.dl.device.device_type == kDLCUDA;
  return plain && known_device && !tensor.readonly() && !has_negative_stride(tensor.dl) && !has_zero_stride(tensor.dl);
}

bool is_name(PyObject* to, PyObject* name) noexcept {
  return to == name || (PyUnicode_CheckExact(to) && PyUnicode_Compare(to, name) == 0);
}

PyObject* convert_in_python(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static PyObject* function = nullptr;  // immortal
  if (function == nullptr) {
    const Ref module(PyImport_ImportModule("dlbridge._convert"));
    function = module ? PyObject_GetAttrString(module.get(), "convert") : nullptr;
    if (function == nullptr) return nullptr;
  }
  return PyObject_Vectorcall(function, args, static_cast<std::size_t>(nargs), kwnames);
}

// convert(object, to) where C can do it. What has been read is handed on to Python: a capsule is read once only.
PyObject* convert_plainly(PyObject* object, PyObject* to) {
  const bool to_torch = is_name(to, torch_name) && connect_torch();
  const bool to_numpy = !to_torch && array_interface::numpy_array_type != nullptr && is_name(to, numpy_name);
  if (to_torch || to_numpy) {
    const Ref tensor(read_any(object));
    if (!tensor) return nullptr;
    TensorObject* self = as_tensor(tensor.get());
    if (to_torch && torch_takes(self->tensor)) return dlpack::give_to_exchange(self, torch_consumer.api);
    if (to_numpy && is_host(self->tensor.dl.device)) return array_interface::make_numpy(self);
    PyObject* const arguments[] = {tensor.get(), to};
    return convert_in_python(arguments, 2, nullptr);
  }
  PyObject* const arguments[] = {object, to};
  return convert_in_python(arguments, 2, nullptr);
}

TensorObject* expect_tensor(PyObject* object, const char* operation) {
  if (is_tensor(object)) return as_tensor(object);
  raise(operation, ErrorCode::kWrongType, "the object is " + type_name(object) + ", no dlbridge.Tensor");
  return nullptr;
}

}  // namespace

PyObject* convert(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  try {
    if (numpy_name == nullptr) {
      numpy_name = PyUnicode_InternFromString("numpy");
      torch_name = PyUnicode_InternFromString("torch");
      if (numpy_name == nullptr || torch_name == nullptr) return nullptr;
    }
    if (nargs == 2 && (kwnames == nullptr || PyTuple_GET_SIZE(kwnames) == 0)) [[likely]]
      return convert_plainly(args[0], args[1]);
    return convert_in_python(args, nargs, kwnames);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* to_exchange(PyObject*, PyObject* const* args, Py_ssize_t nargs) noexcept {
  try {
    if (nargs != 2 || !PyType_Check(args[1])) {
      PyErr_SetString(PyExc_TypeError, "to_exchange() takes a tensor and a type");
      return nullptr;
    }
    TensorObject* self = expect_tensor(args[0], kOperation);
    if (self == nullptr) return nullptr;
    auto* type = reinterpret_cast<PyTypeObject*>(args[1]);
    const DLPackExchangeAPI* api = dlpack::find_exchange_api(type);
    if (api == nullptr || api->managed_tensor_to_py_object_no_sync == nullptr) {
      raise(kOperation, ErrorCode::kRefused, std::string(type->tp_name) + " has no usable __dlpack_c_exchange_api__");
      return nullptr;
    }
    return dlpack::give_to_exchange(self, api);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* to_numpy(PyObject*, PyObject* object) noexcept {
  try {
    TensorObject* self = expect_tensor(object, kOperation);
    if (self == nullptr) return nullptr;
    if (is_host(self->tensor.dl.device)) return array_interface::make_numpy(self);
    raise(kOperation, ErrorCode::kRefused, "NumPy reads host memory only. Copy there: asdlpack(x, device='cpu')");
    return nullptr;
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

}  // namespace dlbridge::py
