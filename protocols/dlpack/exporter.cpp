// Tensor -> DLPack: managed structs that share the tensor object, and Tensor.__dlpack__ with its full signature.
#include <cstring>
#include <string>

#include "dlbridge/dlpack_codec.h"
#include "protocols/common/boundary.h"
#include "protocols/common/copying.h"
#include "protocols/common/streams.h"
#include "protocols/dlpack/dlpack.h"
#include "protocols/dlpack/export_block.h"

namespace dlbridge::dlpack {

namespace {

constexpr char kOperation[] = "Tensor.__dlpack__()";

// --- blocks: one managed struct and the reference it holds; dead ones are kept for the next export ------------------

void free_memory(ExportBlock* block) noexcept { PyMem_RawFree(block); }
DLBRIDGE_PER_THREAD py::Freelist<ExportBlock, free_memory> block_freelist;

// Runs on any thread, with or without the GIL, perhaps with an exception pending, perhaps after the interpreter.
void release_block(ExportBlock* block) noexcept {
  if (!py::interpreter_alive()) return;  // the process frees the rest
  const py::GilHold gil;
  const py::ErrorGuard guard;
  if (block->deleted != nullptr) *block->deleted = true;
  PyObject* owner = py::as_object(block->owner);
  if (!block_freelist.push(block)) free_memory(block);
  py::live.exports.add(-1);
  py::drop(owner);
}

void delete_versioned(DLManagedTensorVersioned* self) { release_block(reinterpret_cast<ExportBlock*>(self)); }
void delete_legacy(DLManagedTensor* self) { release_block(reinterpret_cast<ExportBlock*>(self)); }

DLTensor exported_dltensor(const Tensor& tensor) noexcept {
  DLTensor dl = tensor.dl;
  if (py::switches.dlpack_managed_as_cuda && dl.device.device_type == kDLCUDAManaged) [[unlikely]]
    dl.device.device_type = kDLCUDA;  // DLPack before 0.6 had no managed memory
  return dl;
}

ExportBlock* new_block(py::TensorObject* self) noexcept {
  ExportBlock* block = block_freelist.pop();
  if (block == nullptr) block = static_cast<ExportBlock*>(PyMem_RawMalloc(sizeof(ExportBlock)));
  if (block == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  Py_INCREF(self);
  block->owner = self;
  block->deleted = nullptr;
  py::live.exports.add(1);
  return block;
}

DLManagedTensor* share_legacy(py::TensorObject* self) noexcept {
  ExportBlock* block = new_block(self);
  if (block == nullptr) return nullptr;
  block->legacy.dl_tensor = exported_dltensor(self->tensor);
  block->legacy.manager_ctx = block;
  block->legacy.deleter = delete_legacy;
  return &block->legacy;
}

// --- capsules -----------------------------------------------------------------------------------------------------

// DLPack: the destructor calls the deleter only while the capsule has its unused name.
template <class Managed>
void destroy_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  constexpr const char* kUnused = std::is_same_v<Managed, DLManagedTensor> ? kLegacyName : kVersionedName;
  if (name != kUnused && (name == nullptr || std::strcmp(name, kUnused) != 0)) return;
  py::ErrorGuard guard;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

template <class Managed>
PyObject* make_capsule(Managed* managed) noexcept {
  if (managed == nullptr) return nullptr;
  constexpr const char* kName = std::is_same_v<Managed, DLManagedTensor> ? kLegacyName : kVersionedName;
  PyObject* capsule = PyCapsule_New(managed, kName, destroy_capsule<Managed>);
  if (capsule == nullptr) managed->deleter(managed);
  return capsule;
}

// --- arguments ----------------------------------------------------------------------------------------------------

struct ExportArguments {
  PyObject* stream = nullptr;
  PyObject* max_version = nullptr;
  PyObject* dl_device = nullptr;
  PyObject* copy = nullptr;
};

void store_keyword(ExportArguments& out, PyObject* name, PyObject* value) {
  PyObject** slot = nullptr;
  if (name == py::names.max_version) slot = &out.max_version;
  else if (name == py::names.stream) slot = &out.stream;
  else if (name == py::names.dl_device) slot = &out.dl_device;
  else if (name == py::names.copy) slot = &out.copy;
  if (slot == nullptr) [[unlikely]] {
    const struct {
      PyObject* name;
      PyObject** slot;
    } table[] = {{py::names.max_version, &out.max_version},
                 {py::names.stream, &out.stream},
                 {py::names.dl_device, &out.dl_device},
                 {py::names.copy, &out.copy}};
    for (const auto& entry : table)  // a name that was not interned
      if (PyUnicode_Compare(name, entry.name) == 0) slot = entry.slot;
    if (slot == nullptr)
      py::throw_error(PyExc_TypeError, "%s got an unexpected keyword argument '%U'", kOperation, name);
  }
  *slot = value == Py_None ? nullptr : value;
}

// None or a major of 0 asks for the legacy struct; 1 and above for the versioned one, in our own version, which a
// consumer rechecks (DLPack).
bool wants_versioned(PyObject* max_version) {
  if (max_version == nullptr) return false;
  if (PyTuple_Check(max_version) && PyTuple_GET_SIZE(max_version) == 2 &&
      PyLong_Check(PyTuple_GET_ITEM(max_version, 0)) && PyLong_Check(PyTuple_GET_ITEM(max_version, 1))) [[likely]] {
    const long major = py::checked_number(PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0)));
    return major >= 1;
  }
  py::throw_issue(kOperation, ErrorCode::kWrongType,
                  "max_version is " + py::type_name(max_version) +
                      ", not a pair of integers (major, minor). Pass for example max_version=(1, 0)");
}

Status check_legacy(const Tensor& tensor) {
  if (tensor.readonly())
    return refused("the tensor is read-only, and a legacy capsule cannot say so. Pass max_version=(1, 0), or "
                   "copy=True");
  if (tensor.padded())
    return refused("the tensor's sub-byte elements are padded, and a legacy capsule cannot say so. Pass "
                   "max_version=(1, 0)");
  return {};
}

void parse_copy(PyObject* copy, bool& must, bool& never) {
  must = never = false;
  if (copy == nullptr) return;
  const int truth = PyObject_IsTrue(copy);
  py::checked(truth);
  (truth != 0 ? must : never) = true;
}

// The path of every argument but max_version: another device, a copy, a stream.
PyObject* export_copy(const Tensor& source, DLDevice target, const py::StreamArgument& stream, bool versioned) {
  Tensor copy;
  const StreamHandle handle = stream.kind == py::StreamArgument::Kind::kHandle ? stream.handle : 0;
  py::throw_if_bad(py::copy_without_gil(source, target, handle, copy), kOperation);
  if (is_cuda(target)) py::checked(py::order_for_consumer(copy, stream, kOperation));
  if (versioned) return make_capsule(export_managed(std::move(copy)));
  py::throw_if_bad(check_legacy(copy), kOperation);
  return make_capsule(export_legacy(std::move(copy)));
}

PyObject* export_shared(py::TensorObject* self, bool versioned) {
  if (versioned) [[likely]]
    return make_capsule(share_versioned(self));
  py::throw_if_bad(check_legacy(self->tensor), kOperation);
  return make_capsule(share_legacy(self));
}

PyObject* export_with_arguments(py::TensorObject* self, const ExportArguments& arguments, bool versioned) {
  const Tensor& tensor = self->tensor;
  py::StreamArgument stream;
  bool must_copy, never_copy;
  DLDevice target = tensor.dl.device;
  py::checked(py::parse_stream(arguments.stream, kOperation, stream));
  parse_copy(arguments.copy, must_copy, never_copy);
  if (Status why; arguments.dl_device != nullptr && !parse_device_pair(arguments.dl_device, "dl_device", target, why)) {
    py::raise_refusal(kOperation, why);
    return nullptr;
  }
  const bool moves = !same_device(exported_dltensor(tensor).device, target) && !same_device(tensor.dl.device, target);
  if (moves && is_host(target) && stream.kind == py::StreamArgument::Kind::kHandle)
    py::throw_issue(kOperation, ErrorCode::kRefused,
                    "dl_device names the host, so stream must be None: the producer synchronises (array API)");
  if (moves && never_copy)
    py::throw_issue(kOperation, ErrorCode::kCopyRefused,
                    "the tensor is on " + device_name(tensor.dl.device) + " and dl_device asks for " +
                        device_name(target) +
                        ", which needs a copy that copy=False forbids. Leave copy out, or ask for its own device");
  // A capsule that says another device than was asked for would be taken for what it is not.
  if (moves || (must_copy && arguments.dl_device != nullptr))
    py::throw_if_bad(py::check_copy_target(target), kOperation);
  if (moves || must_copy) return export_copy(tensor, target, stream, versioned);
  py::checked(py::order_for_consumer(tensor, stream, kOperation));
  return export_shared(self, versioned);
}

}  // namespace

DLManagedTensorVersioned* share_versioned(py::TensorObject* self) noexcept {
  ExportBlock* block = new_block(self);
  if (block == nullptr) return nullptr;
  block->versioned.version = kDLPackVersion;
  block->versioned.manager_ctx = block;
  block->versioned.deleter = delete_versioned;
  // Shared with this object, so never solely the consumer's: IS_COPIED does not travel.
  block->versioned.flags = self->tensor.flags & ~kFlagCopied;
  block->versioned.dl_tensor = exported_dltensor(self->tensor);
  return &block->versioned;
}

PyObject* tensor_dlpack(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  return py::guarded([&]() -> PyObject* {
    py::TensorObject* self = py::as_tensor(object);
    if (nargs != 0) [[unlikely]]
      py::throw_error(PyExc_TypeError, "%s takes keyword arguments only (array API), got %zd positional", kOperation,
                      nargs);
    ExportArguments arguments;
    const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < count; ++i) store_keyword(arguments, PyTuple_GET_ITEM(kwnames, i), args[i]);
    const bool versioned = wants_versioned(arguments.max_version);
    const bool plain = arguments.stream == nullptr && arguments.dl_device == nullptr && arguments.copy == nullptr &&
                       is_host(self->tensor.dl.device);
    if (plain) [[likely]]
      return export_shared(self, versioned);
    return export_with_arguments(self, arguments, versioned);
  });
}

PyObject* tensor_dlpack_device(PyObject* object) noexcept {
  const DLDevice device = exported_dltensor(py::as_tensor(object)->tensor).device;
  if (device.device_type == kDLCPU) [[likely]]
    return py::Ref::borrow(py::names.host_device).release();
  return Py_BuildValue("(ii)", static_cast<int>(device.device_type), static_cast<int>(device.device_id));
}

}  // namespace dlbridge::dlpack
