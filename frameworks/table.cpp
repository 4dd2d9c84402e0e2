#include "frameworks/table.h"

#include <algorithm>

#include "frameworks/buffer.h"
#include "frameworks/cudf.h"
#include "frameworks/cvcuda.h"
#include "frameworks/dali.h"
#include "frameworks/dpnp.h"
#include "frameworks/duckdb.h"
#include "frameworks/mlx.h"
#include "frameworks/nanoarrow.h"
#include "frameworks/nd.h"
#include "frameworks/onnxruntime.h"
#include "frameworks/openvino.h"
#include "frameworks/paddle.h"
#include "frameworks/pandas.h"
#include "frameworks/pyarrow.h"
#include "frameworks/tensorflow.h"
#include "frameworks/type_cache.h"
#include "frameworks/warp.h"
#include "frameworks/xarray.h"
#include "protocols/buffer/buffer.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::frameworks {

// Those with code of their own, each in the source of its name.
extern const Framework kNumpy, kTorch, kCupy, kJax, kNumba, kTvmFfi, kPolars, kOpencv;

namespace {

constexpr const Framework* kFrameworks[] = {
    &kNumpy,   &kTorch,       &kCupy, &kJax,    &kTensorflow, &kNumba,  &kCudf,   &kPaddle, &kTvmFfi,
    &kPyarrow, &kOnnxruntime, &kDpnp, &kMlx,    &kOpenvino,   &kNd,     &kBuffer, &kXarray, &kPandas,
    &kPolars,  &kNanoarrow,   &kWarp, &kDuckdb, &kOpencv,     &kCvcuda, &kDali,
};

bool has_name(const Framework& framework, std::string_view name) noexcept {
  return name == framework.name || std::ranges::find(framework.aliases, name, [](const char* alias) {
                                     return std::string_view(alias);
                                   }) != framework.aliases.end();
}

// Apart: asdlpack() asks for the first at every call, and its entries are of the size of half a cache line.
TypeCache<TypeFacts, 128> known_types;
TypeCache<const Framework*, 128> known_homes;

bool has_protocol(PyTypeObject* type) noexcept {
  return type_has(type, py::names.dlpack) || type_has(type, py::names.cuda_array_interface) ||
         type_has(type, py::names.array_interface) || type_has(type, py::names.array_struct);
}

// A column of Arrow data is an array, whole tables and readers of streams are not: those have columns, these no length.
bool is_arrow_column(PyTypeObject* type) noexcept {
  PyObject* const ways[] = {py::names.arrow_c_array, py::names.arrow_c_stream, py::names.arrow_c_device_array,
                            py::names.arrow_c_device_stream};
  if (std::ranges::none_of(ways, [type](PyObject* way) { return type_has(type, way); })) return false;
  const auto has = [type](const char* name) {
    const py::Ref text(PyUnicode_InternFromString(name));
    if (text) return type_has(type, text.get());
    PyErr_Clear();
    return true;
  };
  return has("__len__") && !has("columns") && !has("column_names");
}

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
         type->tp_getattro == PyObject_GenericGetAttr && !has_protocol(type);
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
    {.recognises = is_capsule, .read = read_capsule, .only_alone = true},
    {.recognises = has_exchange_table, .read = read_exchange},
    {.recognises = has_buffer_only, .read = read_buffer, .foreign_bools = true, .only_alone = true},
};

const ArrayKind* find_kind(std::span<const ArrayKind> kinds, PyTypeObject* type,
                           const DLPackExchangeAPI* api) noexcept {
  for (const ArrayKind& kind : kinds)
    if (kind.recognises(type, api)) return &kind;
  return nullptr;
}

// The module where it is defined; of a static type its name, whose last part is the class. `held` keeps the text.
std::string_view home_of(PyTypeObject* type, py::Ref& held) noexcept {
  std::string_view name = type->tp_name;
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
    held = py::dict_item(type->tp_dict, "__module__");
    Py_ssize_t size = 0;
    const char* text = held && PyUnicode_Check(held.get()) ? PyUnicode_AsUTF8AndSize(held.get(), &size) : nullptr;
    if (text == nullptr) return PyErr_Clear(), "";
    name = {text, static_cast<std::size_t>(size)};
  }
  return name;
}

// "torch.nn.parameter" is of "torch", "torchvision" is not.
bool is_within(std::string_view home, std::string_view module) noexcept {
  return home.starts_with(module) && (home.size() == module.size() || home[module.size()] == '.');
}

const Framework* find_package(PyTypeObject* type) noexcept {
  if (type == &PyMemoryView_Type) return &kBuffer;
  PyObject* const bases = type->tp_mro;
  for (Py_ssize_t i = 0; bases != nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
    py::Ref held;
    const std::string_view home = home_of(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i)), held);
    for (const Framework* framework : kFrameworks)
      if (framework != &kBuffer && is_within(home, framework->module)) return framework;
  }
  return nullptr;
}

TypeFacts classify(PyTypeObject* type) noexcept {
  const DLPackExchangeAPI* api = dlpack::find_exchange_api(type);
  if (PyType_IsSubtype(type, py::tensor_types.base)) return {&kOwnTensor, api};
  for (const Framework* framework : kFrameworks)
    if (const ArrayKind* kind = find_kind(framework->arrays, type, api)) return {kind, api};
  const ArrayKind* kind = find_kind(kUnknown, type, api);
  if (kind == nullptr) kind = has_protocol(type) || is_arrow_column(type) ? &kGeneric : &kOpaque;
  return {kind, api};
}

const Framework* find_home(PyTypeObject* type) noexcept {
  const TypeFacts facts = facts_of(type);
  if (facts.kind == &kOwnTensor) return std::string_view(type->tp_name).starts_with(kNd.module) ? &kNd : nullptr;
  for (const Framework* framework : kFrameworks)
    if (find_kind(framework->arrays, type, facts.api) != nullptr) return framework;
  return find_package(type);
}

}  // namespace

constinit const ArrayKind kOwnTensor{.recognises = never};
constinit const ArrayKind kGeneric{.recognises = never, .foreign_bools = true};
constinit const ArrayKind kOpaque{.recognises = never, .foreign_bools = true, .only_alone = true};

std::span<const Framework* const> frameworks() noexcept { return kFrameworks; }

const Framework* find_framework(std::string_view name) noexcept {
  for (const std::string_view wanted : {name, name.substr(0, name.find('.'))})
    for (const Framework* framework : kFrameworks)
      if (has_name(*framework, wanted)) return framework;
  return nullptr;
}

TypeFacts facts_of(PyTypeObject* type) noexcept { return known_types.get(type, classify); }

const Framework* framework_of(PyTypeObject* type) noexcept { return known_homes.get(type, find_home); }

}  // namespace dlbridge::frameworks
