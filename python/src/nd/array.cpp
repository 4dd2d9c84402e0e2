// nd.ndarray, HostArray and CudaArray: life, types and attributes. Operators and methods are in the files beside.
#include "python/src/nd/module.h"

#include "dlbridge/cuda_order.h"
#include "ndarray/core/views.h"
#include "protocols/common/array_arguments.h"
#include "protocols/dlpack/dlpack.h"
#include "python/src/bridge.h"
#include "python/src/nd/call.h"
#include "python/src/nd/runtime/deferred.h"

namespace dlbridge::py::nd {

ArrayTypes array_types;

namespace {

// Of one exact type each; the objects keep the reference to their type.
DLBRIDGE_PER_THREAD TensorFreelist host_freelist;
DLBRIDGE_PER_THREAD TensorFreelist cuda_freelist;

TensorFreelist* freelist_of(PyTypeObject* type) noexcept {
  if (type == array_types.host) return &host_freelist;
  return type == array_types.cuda ? &cuda_freelist : nullptr;
}

TensorObject* allocate(PyTypeObject* type) noexcept {
  TensorObject* self = freelist_of(type)->pop();
  if (self != nullptr) [[likely]] {
    revive(self);
  } else {
    self = PyObject_GC_New(TensorObject, type);
    if (self == nullptr) return nullptr;
  }
  begin_contents(self, Protocol::kNone);
  return self;
}

void recycle(TensorObject* self) noexcept {
  if (!freelist_of(Py_TYPE(as_object(self)))->push(self)) free_memory(self);
}

void free_array(PyObject* object) { free_object<recycle>(object, freelist_of(Py_TYPE(object)) != nullptr); }

// What the views of a storage show as their base, without a reference: the array that the memory was made for or
// adopted by, from its commit() to its end.
void set_base(const Tensor& t, PyObject* array) noexcept {
  if (core::Storage* storage = core::storage_of(t); storage != nullptr) UncountedReference::set(storage->array, array);
}
void forget_base(core::Storage* storage, PyObject* array) noexcept {
  if (storage != nullptr) UncountedReference::remove(storage->array, array);
}

void array_dealloc(PyObject* object) noexcept {
  const TensorObject* self = as_tensor(object);
  core::Storage* storage = core::storage_of(self->tensor);
  forget_base(storage, object);
  if (self->source != nullptr || (storage != nullptr && storage->foreign)) [[unlikely]]
    return free_chain<array_dealloc, free_array>(object);
  free_array(object);
}

// Holds the tensor that an array was adopted from. Any thread may drop the last view.
void release_adopted(void* object) noexcept { drop_anywhere(static_cast<PyObject*>(object)); }

// The Python object that keeps the memory of a storage; null where there is none.
PyObject* python_owner(const core::Storage* storage) noexcept {
  if (storage == nullptr || !storage->foreign) return nullptr;
  const Owner::Release release = storage->foreign.release_function();
  return release == release_adopted || release == release_object ? static_cast<PyObject*>(storage->foreign.context())
                                                                 : nullptr;
}

// The owner belongs to the storage: where other arrays share that, none of them can speak for the owner.
int array_traverse(PyObject* object, visitproc visit, void* arg) noexcept {
  const TensorObject* self = as_tensor(object);
  Py_VISIT(self->source);
  if (const core::Storage* storage = core::storage_of(self->tensor); storage != nullptr && storage->references == 1)
    Py_VISIT(python_owner(storage));
  Py_VISIT(Py_TYPE(object));
  return 0;
}

// Only an array in a dead cycle comes here; what is left of it is empty, so that a finaliser may still look at it.
int array_clear(PyObject* object) noexcept {
  TensorObject* self = as_tensor(object);
  constexpr std::int64_t kNone[] = {0};
  Tensor empty;
  try {
    if (!core::make_array(empty, core::dtype_of(self->tensor), kNone, self->tensor.dl.device).ok()) return 0;
  } catch (...) {
    return 0;  // no memory: the cycle stays
  }
  if (self->notes != nullptr) settle_notes(self);
  forget_base(core::storage_of(self->tensor), object);
  std::swap(self->tensor, empty);
  Py_CLEAR(self->source);
  return 0;  // the memory goes with `empty`
}

// Whether the collector could find a cycle through what keeps the array's memory.
bool may_be_in_cycle(const TensorObject* self) noexcept {
  if (self->source != nullptr && PyType_IS_GC(Py_TYPE(self->source))) return true;
  PyObject* owner = python_owner(core::storage_of(self->tensor));
  if (owner == nullptr) return false;
  return is_tensor(owner) ? as_tensor(owner)->tracked : PyType_IS_GC(Py_TYPE(owner)) != 0;
}

// --- attributes ------------------------------------------------------------------------------------------------------

PyObject* get_transposed(PyObject* self) {
  return make_result("ndarray.T", [&](Tensor& out) { return core::reverse_axes(tensor_of(self), out); });
}

PyObject* get_matrix_transposed(PyObject* self) {
  const Tensor& t = tensor_of(self);
  const int n = t.dl.ndim;
  if (n < 2)
    throw_error(class_for(ErrorCode::kMalformed),
                "ndarray.mT: the array has %d dimensions; a matrix transpose needs at least 2", n);
  std::int8_t axes[kMaxDims];
  for (int k = 0; k < n; ++k) axes[k] = static_cast<std::int8_t>(k);
  std::swap(axes[n - 1], axes[n - 2]);
  return make_result("ndarray.mT",
                     [&](Tensor& out) { return core::transpose_view(t, {axes, static_cast<std::size_t>(n)}, out); });
}

// (c_contiguous, f_contiguous, writeable, owndata), for the Python class of .flags.
constexpr int kFlags = 4;
std::array<bool, kFlags> flags_of(PyObject* self) noexcept {
  const Tensor& t = tensor_of(self);
  return {core::is_c_contiguous(t), core::is_f_contiguous(t), !t.readonly(), core::owns_memory(t)};
}

PyObject* get_flags(PyObject* self) {
  const auto [c_contiguous, f_contiguous, writeable, owns] = flags_of(self);
  return Py_BuildValue("(NNNN)", PyBool_FromLong(c_contiguous), PyBool_FromLong(f_contiguous),
                       PyBool_FromLong(writeable), PyBool_FromLong(owns));
}

// They never change: one object stands for all arrays that have the same ones.
PyObject* get_flags_object(PyObject* self) {
  static PythonFunction make("dlbridge.nd._flags", "Flags");
  static std::array<Atomic<PyObject*>, 1 << kFlags> made;
  std::size_t which = 0;
  for (const bool flag : flags_of(self)) which = 2 * which + (flag ? 1 : 0);
  PyObject* const found = find_once(made[which], [&] {
    const Ref values = owned(get_flags(self));
    return PyObject_CallObject(make.get(), values.get());
  });
  return Ref::borrow(checked(found)).release();
}

// A new line over the whole storage stands for a base that is gone.
PyObject* get_base(PyObject* self) {
  const Tensor& t = tensor_of(self);
  core::Storage* storage = core::storage_of(t);
  if (storage == nullptr || UncountedReference::is(storage->array, self)) Py_RETURN_NONE;
  if (PyObject* base = UncountedReference::get(storage->array); base != nullptr) return base;
  NewArray out;
  const std::int64_t extents[] = {static_cast<std::int64_t>(storage->bytes) / t.itemsize()};
  throw_if_bad(core::make_dense_at(*storage, 0, core::dtype_of(t), extents, core::Order::kC, out.tensor()),
               "ndarray.base");
  out.tensor().flags |= t.flags & kFlagReadOnly;
  PyObject* base = out.commit();
  UncountedReference::set(storage->array, base);
  return base;
}

int array_from_managed(DLManagedTensorVersioned* managed, void** out) noexcept {
  return guarded([&] {
    const Ref tensor(as_object(dlpack::tensor_from_managed(managed)));
    *out = tensor ? adopt(as_tensor(tensor.get())) : nullptr;
    return *out == nullptr ? -1 : 0;
  });
}

// The bridge's exchange table serves arrays too, which are Tensors, but gives back Tensors; consumers look in the
// type's own __dict__.
void advertise_exchange_api(PyTypeObject* type) {
  static const DLPackExchangeAPI table = [] {
    DLPackExchangeAPI own = dlpack::own_exchange_api();
    own.managed_tensor_to_py_object_no_sync = array_from_managed;
    return own;
  }();
  const Ref capsule = owned(dlpack::make_exchange_api_capsule(table));
  checked(PyDict_SetItem(type->tp_dict, names.dlpack_c_exchange_api, capsule.get()));
  PyType_Modified(type);
}

// Not immutable: dlbridge/nd/__init__.py adds the methods that are colder than C++ is worth.
PyTypeObject* add_array_type(PyObject* module, const char* name, std::vector<PyType_Slot> slots, PyObject* bases) {
  for (const PyType_Slot& life :
       {slot<array_dealloc>(Py_tp_dealloc), slot<array_traverse>(Py_tp_traverse), slot<array_clear>(Py_tp_clear)})
    slots.push_back(life);
  PyTypeObject* type = add_type(module, name, sizeof(TensorObject),
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, std::move(slots), bases);
  advertise_exchange_api(type);
  return type;
}

// HostArray or CudaArray, of ndarray and the tensor of that kind. It has what they have once more, in the order of the
// MRO, the first of a name for all: where a method is not of the object's own type, CPython walks the bases to find
// whether the object is of it, and has no fast call for it.
PyTypeObject* add_leaf_type(PyObject* module, const char* name, PyTypeObject* kind) {
  std::vector<PyMethodDef> methods;
  std::vector<PyGetSetDef> getters;
  for (const PyTypeObject* base : {array_types.base, kind, tensor_types.base}) {
    for (const PyMethodDef* row = base->tp_methods; row != nullptr && row->ml_name != nullptr; ++row)
      methods.push_back(*row);
    for (const PyGetSetDef* row = base->tp_getset; row != nullptr && row->name != nullptr; ++row)
      getters.push_back(*row);
  }
  const Ref bases = owned(PyTuple_Pack(2, array_types.base, kind));
  constexpr char kDoc[] = "An nd.ndarray; which kind follows from its device.";
  return add_array_type(
      module, name, {methods_slot(std::move(methods)), getters_slot(std::move(getters)), doc_slot(kDoc)}, bases.get());
}

constexpr char kArrayDoc[] =
    "ndarray(shape, dtype='float64', memptr=None, strides=None, order='C', *, device=None)\n--\n\n"
    "A dense array on a GPU or on the host, and a dlbridge.Tensor: it offers every array protocol.\n\n"
    "The constructor leaves the elements uninitialised; memptr is a MemoryPointer that the array is to use. Make\n"
    "arrays with nd.array, nd.zeros, nd.arange and so on.";

}  // namespace

void init_array_types(PyObject* module) {
  std::vector<PyMethodDef> methods = array_methods();
  for (const PyMethodDef& reduction : reduction_methods()) methods.push_back(reduction);
  std::vector<PyType_Slot> slots = number_slots();
  for (const PyType_Slot& subscript : subscript_slots()) slots.push_back(subscript);
  std::vector<PyGetSetDef> attributes = part_attributes();
  for (const PyGetSetDef& own :
       {getter<get_transposed>("T", "ndarray: the axes in reverse order, a view."),
        getter<get_matrix_transposed>("mT", "ndarray: the last two axes exchanged, a view (array API)."),
        getter<get_base>("base", "ndarray: the array that this one is a view of; None where it has its memory by "
                                 "itself. Where that array is gone, a new one of the whole memory."),
        getter<get_flags>("_flags", "(c_contiguous, f_contiguous, writeable, owndata)"),
        getter<get_flags_object>("flags", "How the array lies in memory: c_contiguous, f_contiguous, owndata, "
                                          "writeable; also by NumPy's names as items."),
        getter<make_data_attribute>("data",
                                    "MemoryPointer: the array's memory; .ptr is the address of the first element.")})
    attributes.push_back(own);
  for (const PyType_Slot& own : {slot<new_array>(Py_tp_new), getters_slot(std::move(attributes)),
                                 methods_slot(std::move(methods)), doc_slot(kArrayDoc)})
    slots.push_back(own);
  array_types.base =
      add_array_type(module, "dlbridge.nd.ndarray", std::move(slots), reinterpret_cast<PyObject*>(tensor_types.base));
  array_types.host = add_leaf_type(module, "dlbridge.nd.HostArray", tensor_types.host);
  array_types.cuda = add_leaf_type(module, "dlbridge.nd.CudaArray", tensor_types.cuda);
}

// --- making arrays ---------------------------------------------------------------------------------------------------

namespace {
PyTypeObject* likely_type() noexcept {
  // Where a GPU is used nearly every array lies there; commit() corrects the rest.
  return cuda_freelist.empty() ? array_types.host : array_types.cuda;
}
}  // namespace

NewArray::NewArray() : self_(allocate(likely_type())) {
  if (self_ == nullptr) [[unlikely]]
    throw PythonError();
}

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
  if (Py_TYPE(as_object(self)) != wanted) [[unlikely]]
    change_type(self, wanted);
  if (core::owns_memory(self->tensor)) set_base(self->tensor, as_object(self));
  if (may_be_in_cycle(self)) [[unlikely]] {
    self->tracked = true;
    PyObject_GC_Track(self);
  }
  return as_object(self);
}

PyObject* adopt(const Tensor& t, Owner&& owner, PyObject* source) {
  constexpr char kOperation[] = "nd.asarray()";
  NewArray out;
  if (!core::is_supported(core::dtype_of(t)))
    throw_issue(kOperation, ErrorCode::kWrongType,
                "the array has dtype " + dtype_name(t.dl.dtype) +
                    "; nd.ndarray takes bool, integers, float16, bfloat16, "
                    "float32, float64, complex64 and complex128. Convert it in its own framework first");
  if (!is_host(t.dl.device) && !is_cuda(t.dl.device))
    throw_issue(kOperation, ErrorCode::kWrongType,
                "the array is on " + device_name(t.dl.device) +
                    "; nd.ndarray lives on the host or on CUDA devices. Copy it there first");
  if (!core::is_loadable(t))
    throw_issue(kOperation, ErrorCode::kRefused,
                "the data does not lie at a multiple of its itemsize, and a GPU cannot load " + dtype_name(t.dl.dtype) +
                    " from there. Copy it in its own framework first");
  const core::ByteRange range = core::byte_range(t);
  const Ordering ready = t.ready.settled();
  StreamHandle stream = 0;
  if (is_cuda(t.dl.device)) {
    stream = core::work_stream(t.dl.device);  // ordered here, once: an event has no number to keep
    throw_if_bad(cuda::order(stream, ready, t.dl.device.device_id), kOperation);
  }
  core::Storage* storage = core::adopt_storage(t.dl.device, reinterpret_cast<void*>(range.first),
                                               range.last - range.first, stream, std::move(owner));
  if (storage == nullptr) throw std::bad_alloc();
  Tensor& made = out.tensor();
  const auto n = static_cast<std::size_t>(t.dl.ndim);
  const Status status = core::make_view(t, {t.dl.shape, n}, {t.dl.strides, n}, 0, made);
  made.owner = Owner(storage, core::release_storage_owner);
  made.ready = stream == 0 ? Ordering::ready() : Ordering::on_stream_of(&storage->stream);
  out.set_source(source);
  throw_if_bad(status, kOperation);
  PyObject* array = out.commit();
  UncountedReference::set(storage->array, array);
  return array;
}

PyObject* adopt(TensorObject* source) {
  return adopt(source->tensor, Owner(Ref::borrow(as_object(source)).release(), release_adopted), source->source);
}

}  // namespace dlbridge::py::nd
