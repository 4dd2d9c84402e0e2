#include "python/src/routes.h"

#include <string_view>

#include "protocols/array_interface/array_interface.h"
#include "protocols/cuda_array_interface/cupy_reader.h"

namespace dlbridge::py {

namespace {

constexpr std::size_t kSlots = 128;  // direct-mapped; a collision costs one classification
TypeEntry table[kSlots];             // guarded by the GIL

std::size_t slot_of(PyTypeObject* type) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(type);
  return ((address >> 4) ^ (address >> 11)) % kSlots;
}

// A type that can change in Python gives its version tag up when it does. 0: it has none, ask again next time.
bool is_current(const TypeEntry& entry) noexcept {
  if (PyType_HasFeature(entry.type, Py_TPFLAGS_IMMUTABLETYPE)) return true;
#if PY_VERSION_HEX < 0x030D0000
  if (!PyType_HasFeature(entry.type, Py_TPFLAGS_VALID_VERSION_TAG)) return false;
#endif
  return entry.version != 0 && entry.type->tp_version_tag == entry.version;
}

bool type_has(PyTypeObject* type, PyObject* name) noexcept {
  const int found = PyObject_HasAttr(reinterpret_cast<PyObject*>(type), name);
  PyErr_Clear();
  return found != 0;
}

bool has_instance_dict(PyTypeObject* type) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  if (PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) return true;
#endif
  return type->tp_dictoffset != 0;
}

// torch.Tensor, once somebody has imported PyTorch. Borrowed from its module.
PyTypeObject* torch_tensor_type() noexcept {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (module == nullptr) return nullptr;
  const Ref type(PyObject_GetAttrString(module, "Tensor"));
  PyErr_Clear();
  return type && PyType_Check(type.get()) ? reinterpret_cast<PyTypeObject*>(type.get()) : nullptr;
}

void classify(PyTypeObject* type, TypeEntry& entry) noexcept {
  entry.route = Route::kGeneric;
  entry.api = nullptr;
  if (!array_interface::connect_numpy()) PyErr_Clear();
  PyTypeObject* numpy = array_interface::numpy_array_type;
  PyTypeObject* torch = torch_tensor_type();
  entry.api = dlpack::find_exchange_api(type);
  if (PyType_IsSubtype(type, tensor_types.base)) {
    entry.route = Route::kTensor;
  } else if (numpy != nullptr && PyType_IsSubtype(type, numpy)) {
    entry.route = Route::kNumpy;
  } else if (torch != nullptr && PyType_IsSubtype(type, torch)) {
    entry.route = type == torch && entry.api != nullptr ? Route::kTorch : Route::kTorchSubclass;
  } else if (type == cuda_array_interface::cupy_array_type()) {
    entry.route = Route::kCupy;
  } else if (type == &PyCapsule_Type) {
    entry.route = Route::kCapsule;
  } else if (entry.api != nullptr) {
    entry.route = Route::kExchange;
  } else if (type->tp_as_buffer != nullptr && type->tp_as_buffer->bf_getbuffer != nullptr &&
             !has_instance_dict(type) && type->tp_getattro == PyObject_GenericGetAttr &&
             !type_has(type, names.dlpack) && !type_has(type, names.array_interface) &&
             !type_has(type, names.array_struct) && !type_has(type, names.cuda_array_interface)) {
    entry.route = Route::kBuffer;
  }
}

}  // namespace

const TypeEntry& route_of(PyTypeObject* type) noexcept {
  TypeEntry& entry = table[slot_of(type)];
  if (entry.type == type && is_current(entry)) [[likely]] return entry;
  PyTypeObject* old = entry.type;
  Py_INCREF(type);
  entry.type = type;
  classify(type, entry);
  entry.version = type->tp_version_tag;
  Py_XDECREF(old);  // last: it may run Python code, which may come here again
  return entry;
}

}  // namespace dlbridge::py
