#include "frameworks/table.h"

#include <algorithm>

#include "frameworks/buffer.h"
#include "frameworks/cudf.h"
#include "frameworks/dpnp.h"
#include "frameworks/mlx.h"
#include "frameworks/nd.h"
#include "frameworks/onnxruntime.h"
#include "frameworks/openvino.h"
#include "frameworks/paddle.h"
#include "frameworks/pandas.h"
#include "frameworks/pyarrow.h"
#include "frameworks/tensorflow.h"
#include "frameworks/xarray.h"
#include "protocols/buffer/buffer.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::frameworks {

// Those with code of their own, each in the source of its name.
extern const Framework kNumpy, kTorch, kCupy, kJax, kNumba, kTvmFfi;

namespace {

constexpr const Framework* kFrameworks[] = {
    &kNumpy,   &kTorch,       &kCupy, &kJax, &kTensorflow, &kNumba, &kCudf,   &kPaddle, &kTvmFfi,
    &kPyarrow, &kOnnxruntime, &kDpnp, &kMlx, &kOpenvino,   &kNd,    &kBuffer, &kXarray, &kPandas,
};

bool has_name(const Framework& framework, std::string_view name) noexcept {
  return name == framework.name || std::ranges::find(framework.aliases, name, [](const char* alias) {
                                     return std::string_view(alias);
                                   }) != framework.aliases.end();
}

struct TypeEntry {
  PyTypeObject* type = nullptr;  // a strong reference: the address stays the type's own
  unsigned version = 0;          // tp_version_tag when it was classified
  TypeFacts found;
};

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

// For types whose objects have no attributes but their type's. Runs no code of a metaclass.
bool type_has(PyTypeObject* type, PyObject* name) noexcept { return _PyType_Lookup(type, name) != nullptr; }

bool has_instance_dict(PyTypeObject* type) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  if (PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) return true;
#endif
  return type->tp_dictoffset != 0;
}

bool never(PyTypeObject*, const DLPackExchangeAPI*) noexcept { return false; }
bool is_capsule(PyTypeObject* type, const DLPackExchangeAPI*) noexcept { return type == &PyCapsule_Type; }
bool has_exchange_table(PyTypeObject*, const DLPackExchangeAPI* api) noexcept { return api != nullptr; }
// A built-in whose only protocol is the buffer.
bool has_buffer_only(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  return type->tp_as_buffer != nullptr && type->tp_as_buffer->bf_getbuffer != nullptr && !has_instance_dict(type) &&
         type->tp_getattro == PyObject_GenericGetAttr && !type_has(type, py::names.dlpack) &&
         !type_has(type, py::names.array_interface) && !type_has(type, py::names.array_struct) &&
         !type_has(type, py::names.cuda_array_interface);
}
py::Read read_capsule(PyObject* object, const DLPackExchangeAPI*, py::ReadCall& call, py::TensorObject* self) {
  self->protocol = py::Protocol::kDLPack;
  return dlpack::read_capsule(object, call, self);
}
py::Read read_exchange(PyObject* object, const DLPackExchangeAPI* api, py::ReadCall& call, py::TensorObject* self) {
  self->protocol = py::Protocol::kDLPack;
  return dlpack::read_exchange(object, api, call, self);
}
py::Read read_buffer(PyObject* object, const DLPackExchangeAPI*, py::ReadCall& call, py::TensorObject* self) {
  self->protocol = py::Protocol::kBuffer;
  return buffer::read(object, call, self);
}

// What is of no framework that is known, by the protocol that its type has.
constexpr ArrayKind kUnknown[] = {
    {.recognises = is_capsule, .read = read_capsule},
    {.recognises = has_exchange_table, .read = read_exchange},
    {.recognises = has_buffer_only, .read = read_buffer, .foreign_bools = true},
};

const ArrayKind* find_kind(std::span<const ArrayKind> kinds, PyTypeObject* type,
                           const DLPackExchangeAPI* api) noexcept {
  for (const ArrayKind& kind : kinds)
    if (kind.recognises(type, api)) return &kind;
  return nullptr;
}

TypeFacts classify(PyTypeObject* type) noexcept {
  const DLPackExchangeAPI* api = dlpack::find_exchange_api(type);
  if (PyType_IsSubtype(type, py::tensor_types.base)) return {&kOwnTensor, api};
  for (const Framework* framework : kFrameworks)
    if (const ArrayKind* kind = find_kind(framework->arrays, type, api)) return {kind, api};
  const ArrayKind* kind = find_kind(kUnknown, type, api);
  return {kind != nullptr ? kind : &kGeneric, api};
}

}  // namespace

constinit const ArrayKind kOwnTensor{.recognises = never};
constinit const ArrayKind kGeneric{.recognises = never, .foreign_bools = true};

std::span<const Framework* const> frameworks() noexcept { return kFrameworks; }

const Framework* find_framework(std::string_view name) noexcept {
  for (const std::string_view wanted : {name, name.substr(0, name.find('.'))})
    for (const Framework* framework : kFrameworks)
      if (has_name(*framework, wanted)) return framework;
  return nullptr;
}

TypeFacts facts_of(PyTypeObject* type) noexcept {
  TypeEntry& entry = table[slot_of(type)];
  if (entry.type == type && is_current(entry)) [[likely]]
    return entry.found;
  const TypeFacts found = classify(type);  // may come here again for another type of this slot: stored when it is done
  PyTypeObject* old = entry.type;
  Py_INCREF(type);
  entry = {type, type->tp_version_tag, found};
  Py_XDECREF(old);  // last: it may run Python code, which may come here again
  return found;
}

}  // namespace dlbridge::frameworks
