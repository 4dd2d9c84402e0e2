// nd.ndarray, HostArray and CudaArray: life, types and attributes. Operators and methods are in the files beside.
#include "python/src/nd/array_type.h"

#include <structmember.h>

#include "dlbridge/cuda_order.h"
#include "protocols/common/array_arguments.h"
#include "python/src/bridge.h"

namespace dlbridge::py::nd {

ArrayTypes array_types;

namespace {

// Dead arrays of one exact type, kept for the next; they keep the reference to their type. The GIL guards it.
struct Freelist {
  static constexpr int kCapacity = 128;
  TensorObject* items[kCapacity];
  int count = 0;
};
Freelist host_freelist, cuda_freelist;

Freelist* freelist_of(PyTypeObject* type) noexcept {
  if (type == array_types.host) return &host_freelist;
  return type == array_types.cuda ? &cuda_freelist : nullptr;
}

TensorObject* allocate(PyTypeObject* type) noexcept {
  Freelist* list = freelist_of(type);
  TensorObject* self;
  if (list->count > 0) [[likely]] {
    self = list->items[--list->count];
    revive(self);
  } else {
    self = PyObject_GC_New(TensorObject, type);
    if (self == nullptr) return nullptr;
  }
  self->tracked = false;
  self->source = nullptr;
  self->weakrefs = nullptr;
  self->protocol = Protocol::kNone;
  new (&self->tensor) Tensor();
  ++live.tensors;
  return self;
}

void recycle(TensorObject* self) noexcept {
  PyTypeObject* type = Py_TYPE(as_object(self));
  Freelist* list = freelist_of(type);
  if (list->count < Freelist::kCapacity) {
    list->items[list->count++] = self;
    return;
  }
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

void drop_contents(TensorObject* self) noexcept {
  ErrorGuard guard;  // foreign owners and Python allocators run code of their own
  self->tensor.~Tensor();
  Py_CLEAR(self->source);
  --live.tensors;
}

void array_dealloc(PyObject* object) {
  TensorObject* self = as_tensor(object);
  PyTypeObject* type = Py_TYPE(object);
  const bool exact = freelist_of(type) != nullptr;
  if (self->tracked || !exact) PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) [[unlikely]] PyObject_ClearWeakRefs(object);
  drop_contents(self);
  if (exact) [[likely]] return recycle(self);
  type->tp_free(object);
  Py_DECREF(type);
}

int array_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(as_tensor(object)->source);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

// --- attributes -------------------------------------------------------------------------------------------------------

PyObject* get_transposed(PyObject* self, void*) noexcept {
  const Tensor& t = tensor_of(self);
  std::int8_t axes[kMaxDims];
  for (int k = 0; k < t.dl.ndim; ++k) axes[k] = static_cast<std::int8_t>(t.dl.ndim - 1 - k);
  NewArray out;
  if (!out) return nullptr;
  return finish("ndarray.T", core::transpose_view(t, {axes, static_cast<std::size_t>(t.dl.ndim)}, out.tensor()), out);
}

PyObject* get_matrix_transposed(PyObject* self, void*) noexcept {
  const Tensor& t = tensor_of(self);
  const int n = t.dl.ndim;
  if (n < 2) {
    raise("ndarray.mT", ErrorCode::kMalformed,
          "the array has " + std::to_string(n) + " dimensions; a matrix transpose needs at least 2");
    return nullptr;
  }
  std::int8_t axes[kMaxDims];
  for (int k = 0; k < n; ++k) axes[k] = static_cast<std::int8_t>(k);
  std::swap(axes[n - 1], axes[n - 2]);
  NewArray out;
  if (!out) return nullptr;
  return finish("ndarray.mT", core::transpose_view(t, {axes, static_cast<std::size_t>(n)}, out.tensor()), out);
}

// (c_contiguous, f_contiguous, writeable, owndata), for the Python class of .flags.
PyObject* get_flags(PyObject* self, void*) noexcept {
  const Tensor& t = tensor_of(self);
  const core::Storage* storage = core::storage_of(t);
  const bool owns = storage != nullptr && storage->resource != nullptr && storage->data == t.dl.data;
  return Py_BuildValue("(NNNN)", PyBool_FromLong(core::is_c_contiguous(t)), PyBool_FromLong(core::is_f_contiguous(t)),
                       PyBool_FromLong(!t.readonly()), PyBool_FromLong(owns));
}

PyObject* get_memory(PyObject* self, void*) noexcept { return make_data_attribute(self); }

PyGetSetDef attributes[] = {
    {"T", get_transposed, nullptr, "ndarray: the axes in reverse order, a view.", nullptr},
    {"mT", get_matrix_transposed, nullptr, "ndarray: the last two axes exchanged, a view (array API).", nullptr},
    {"_flags", get_flags, nullptr, "(c_contiguous, f_contiguous, writeable, owndata)", nullptr},
    {"data", get_memory, nullptr, "MemoryPointer: the array's memory; .ptr is the address of the first element.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// The exchange table of the bridge serves arrays too, which are Tensors; consumers look in the type's own __dict__.
bool advertise_exchange_api(PyTypeObject* type) {
  PyObject* capsule = PyDict_GetItem(tensor_types.base->tp_dict, names.dlpack_c_exchange_api);
  if (capsule == nullptr || PyDict_SetItem(type->tp_dict, names.dlpack_c_exchange_api, capsule) != 0) return false;
  PyType_Modified(type);
  return true;
}

PyTypeObject* make_type(PyObject* module, const char* name, PyType_Slot* slots, PyObject* bases) {
  // Not immutable: dlbridge/nd/_methods.py adds the methods that are colder than C++ is worth.
  PyType_Spec spec{name, sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, bases));
}

constexpr char kArrayDoc[] =
    "ndarray(shape, dtype='float64', memptr=None, strides=None, order='C', *, device=None)\n--\n\n"
    "A dense array on a GPU or on the host, and a dlbridge.Tensor: it offers every array protocol.\n\n"
    "The constructor leaves the elements uninitialised; memptr is a MemoryPointer that the array shall use. Make\n"
    "arrays with nd.array, nd.zeros, nd.arange and so on.";

}  // namespace

bool init_array_types(PyObject* module) {
  PyType_Slot base_slots[kMaxSlots];
  int n = 0;
  const auto add = [&](int slot, void* value) { base_slots[n++] = {slot, value}; };
  add(Py_tp_dealloc, slot_pointer(array_dealloc));
  add(Py_tp_traverse, slot_pointer(array_traverse));
  add(Py_tp_new, slot_pointer(new_array));
  add(Py_tp_getset, attributes);
  add(Py_tp_methods, array_methods);
  add(Py_tp_doc, const_cast<char*>(kArrayDoc));
  for (const PyType_Slot* slot = number_slots; slot->slot != 0; ++slot) base_slots[n++] = *slot;
  for (const PyType_Slot* slot = subscript_slots; slot->slot != 0; ++slot) base_slots[n++] = *slot;
  base_slots[n] = {0, nullptr};
  array_types.base = make_type(module, "dlbridge.nd.ndarray", base_slots, reinterpret_cast<PyObject*>(tensor_types.base));
  if (array_types.base == nullptr) return false;
  PyType_Slot leaf_slots[] = {{Py_tp_dealloc, slot_pointer(array_dealloc)},
                              {Py_tp_traverse, slot_pointer(array_traverse)},
                              {Py_tp_doc, const_cast<char*>("An nd.ndarray; which kind follows from its device.")},
                              {0, nullptr}};
  const Ref host_bases(PyTuple_Pack(2, array_types.base, tensor_types.host));
  const Ref cuda_bases(PyTuple_Pack(2, array_types.base, tensor_types.cuda));
  if (!host_bases || !cuda_bases) return false;
  array_types.host = make_type(module, "dlbridge.nd.HostArray", leaf_slots, host_bases.get());
  array_types.cuda = make_type(module, "dlbridge.nd.CudaArray", leaf_slots, cuda_bases.get());
  for (PyTypeObject* type : {array_types.base, array_types.host, array_types.cuda})
    if (type == nullptr || !advertise_exchange_api(type)) return false;
  return PyModule_AddObjectRef(module, "ndarray", reinterpret_cast<PyObject*>(array_types.base)) == 0 &&
         PyModule_AddObjectRef(module, "HostArray", reinterpret_cast<PyObject*>(array_types.host)) == 0 &&
         PyModule_AddObjectRef(module, "CudaArray", reinterpret_cast<PyObject*>(array_types.cuda)) == 0;
}

// --- making arrays ------------------------------------------------------------------------------------------------------

namespace {
PyTypeObject* likely_type() noexcept {
  // Where a GPU is used nearly every array lies there; commit() mends the rest.
  return cuda_freelist.count > 0 ? array_types.cuda : array_types.host;
}
}  // namespace

NewArray::NewArray() noexcept : self_(allocate(likely_type())) {}

NewArray::~NewArray() {
  if (self_ == nullptr) return;
  drop_contents(self_);
  recycle(self_);
}

void NewArray::set_source(PyObject* object) noexcept {
  Py_XINCREF(object);
  self_->source = object;
}

PyObject* NewArray::commit() noexcept {
  TensorObject* self = std::exchange(self_, nullptr);
  PyTypeObject* wanted = is_cuda(self->tensor.dl.device) ? array_types.cuda : array_types.host;
  if (Py_TYPE(as_object(self)) != wanted) [[unlikely]] change_type(self, wanted);
  if (self->source != nullptr && PyType_IS_GC(Py_TYPE(self->source))) [[unlikely]] {
    self->tracked = true;
    PyObject_GC_Track(self);
  }
  return as_object(self);
}

bool succeeded(const char* operation, const Status& status) noexcept {
  if (status.ok()) [[likely]] return true;
  raise(operation, status.issue());
  return false;
}

PyObject* finish(const char* operation, const Status& status, NewArray& result) noexcept {
  return succeeded(operation, status) ? result.commit() : nullptr;
}

PyObject* adopt(TensorObject* source) {
  NewArray out;
  if (!out) return nullptr;
  const Tensor& t = source->tensor;
  if (!core::is_supported(core::dtype_of(t))) {
    raise("nd.asarray()", ErrorCode::kWrongType,
          "the array has dtype " + dtype_name(t.dl.dtype) + "; nd.ndarray takes bool, integers, float16, bfloat16, "
          "float32, float64, complex64 and complex128. Convert it in its own framework first");
    return nullptr;
  }
  if (!is_host(t.dl.device) && !is_cuda(t.dl.device)) {
    raise("nd.asarray()", ErrorCode::kWrongType, "the array is on " + device_name(t.dl.device) +
          "; nd.ndarray lives on the host or on CUDA devices. Copy it there first");
    return nullptr;
  }
  if (!core::is_loadable(t)) {
    raise("nd.asarray()", ErrorCode::kRefused, "the data lies at no multiple of its itemsize, and a GPU cannot load " +
          dtype_name(t.dl.dtype) + " from there. Copy it in its own framework first");
    return nullptr;
  }
  const core::ByteRange range = core::byte_range(t);
  const auto release = [](void* object) noexcept {  // any thread may drop the last view
    if (!interpreter_alive()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    {
      ErrorGuard guard;
      Py_DECREF(static_cast<PyObject*>(object));
    }
    PyGILState_Release(state);
  };
  const Ordering ready = t.ready.settled();
  StreamHandle stream = 0;
  Status status;
  if (is_cuda(t.dl.device)) {
    stream = core::work_stream(t.dl.device);  // ordered here, once: an event has no number to keep
    status = cuda::order(stream, ready, t.dl.device.device_id);
  }
  if (!succeeded("nd.asarray()", status)) return nullptr;
  core::Storage* storage = core::adopt_storage(t.dl.device, t.dl.data, range.last - range.first, stream,
                                               Owner(Ref::borrow(as_object(source)).release(), release));
  if (storage == nullptr) return PyErr_NoMemory();
  Tensor& made = out.tensor();
  const auto n = static_cast<std::size_t>(t.dl.ndim);
  status = core::make_view(t, {t.dl.shape, n}, {t.dl.strides, n}, 0, made);
  made.owner = Owner(storage, core::release_storage_owner);
  made.ready = stream == 0 ? Ordering::ready() : Ordering::on_stream_of(&storage->stream);
  out.set_source(source->source);
  return finish("nd.asarray()", status, out);
}

}  // namespace dlbridge::py::nd
