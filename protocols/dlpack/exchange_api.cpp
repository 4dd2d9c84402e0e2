// The C exchange API of DLPack 1.3, producer side: the table on dlbridge's Tensor types; and giving to other tables.
#include <string>

#include "dlbridge/device_copy.h"
#include "dlbridge/dlpack_codec.h"
#include "protocols/common/boundary.h"
#include "protocols/common/streams.h"
#include "protocols/dlpack/dlpack.h"
#include "protocols/dlpack/export_block.h"

namespace dlbridge::dlpack {

namespace {

constexpr char kOperation[] = "dlbridge exchange API";

const char* kind_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kOutOfMemory: return "MemoryError";
    case ErrorCode::kOverflow: return "OverflowError";
    case ErrorCode::kMalformed: return "ValueError";
    case ErrorCode::kCuda: return "RuntimeError";
    default: return "BufferError";
  }
}

Status allocate_like(const DLTensor& prototype, Tensor& out) {
  Tensor checked;  // the prototype's data, strides and offset are not to be read (DLPack 1.3)
  DLTensor readable = prototype;
  char nowhere = 0;
  readable.data = &nowhere;
  readable.strides = nullptr;
  readable.byte_offset = 0;
  DLBRIDGE_TRY(decode_dltensor(readable, 0, checked));
  const DLTensor& dl = checked.dl;
  if (is_cuda(dl.device))
    return cuda::allocate_device(dl.dtype, dl.ndim, dl.shape, dl.device, cuda::current_stream(dl.device.device_id),
                                 out);
  if (dl.device.device_type == kDLCPU) return allocate_host(dl.dtype, dl.ndim, dl.shape, out);
  return refused("dlbridge allocates on cpu and cuda, not on " + device_name(dl.device));
}

int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
             void (*set_error)(void* error_ctx, const char* kind, const char* message)) noexcept {
  const auto fail = [&](const char* kind, const char* message) {
    if (set_error != nullptr) set_error(error_ctx, kind, message);
    return -1;
  };
  try {
    if (prototype == nullptr || out == nullptr) return fail("ValueError", "prototype and out must not be NULL");
    Tensor tensor;
    if (const Status status = allocate_like(*prototype, tensor); !status.ok())
      return fail(kind_of(status.code()), status.message().c_str());
    tensor.flags = 0;
    *out = export_managed(std::move(tensor));
    return 0;
  } catch (...) {
    return fail("MemoryError", "out of memory");
  }
}

// The tensor behind `object`, its data ordered before what its framework's current stream does next.
py::TensorObject* ordered_tensor(void* object) {
  auto* candidate = static_cast<PyObject*>(object);
  if (!py::is_tensor(candidate))
    py::throw_issue(kOperation, ErrorCode::kWrongType,
                    "the object is " + py::type_name(candidate) + ", not a dlbridge.Tensor");
  py::TensorObject* self = py::as_tensor(candidate);
  const DLDevice device = self->tensor.dl.device;
  if (is_cuda(device))
    py::throw_if_bad(cuda::order(cuda::current_stream(device.device_id), self->tensor.ready, device.device_id),
                     kOperation);
  return self;
}

int managed_from_object(void* object, DLManagedTensorVersioned** out) noexcept {
  return py::guarded([&] {
    *out = nullptr;
    *out = share_versioned(ordered_tensor(object));
    return *out == nullptr ? -1 : 0;
  });
}

int dltensor_from_object(void* object, DLTensor* out) noexcept {
  return py::guarded([&] {
    *out = ordered_tensor(object)->tensor.dl;
    return 0;
  });
}

int object_from_managed(DLManagedTensorVersioned* managed, void** out) noexcept {
  return py::guarded([&] {
    *out = py::settled(tensor_from_managed(managed), kOperation);
    return *out == nullptr ? -1 : 0;
  });
}

int current_work_stream(DLDeviceType device_type, int32_t device_id, void** out) noexcept {
  const DLDevice device{device_type, device_id};
  const StreamHandle stream = is_cuda(device) ? cuda::current_stream(device_id) : 0;
  *out = reinterpret_cast<void*>(stream == kLegacyStream ? 0 : stream);  // as CUDA itself calls the default stream
  return 0;
}

constexpr DLPackExchangeAPI kTable{
    {kDLPackVersion, nullptr}, allocate, managed_from_object, object_from_managed, dltensor_from_object,
    current_work_stream,
};

// The consumer's stream is asked for at every call (DLPack 1.3) and made to wait; nothing blocks the host.
void order_for_api(const py::TensorObject* self, const DLPackExchangeAPI* api, const char* operation) {
  const DLDevice device = self->tensor.dl.device;
  if (!is_cuda(device) || self->tensor.ready.is_ready()) return;
  void* stream = nullptr;
  if (api->current_work_stream == nullptr ||
      api->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
    py::checked(PyErr_Occurred() == nullptr);
    py::throw_issue(operation, ErrorCode::kRefused,
                    "the consumer's exchange API does not say which stream it works on");
  }
  const StreamHandle handle = Ordering::on_stream(reinterpret_cast<StreamHandle>(stream)).handle;
  py::throw_if_bad(cuda::order(handle, self->tensor.ready, device.device_id), operation);
}

}  // namespace

const DLPackExchangeAPI& own_exchange_api() noexcept { return kTable; }

PyObject* make_exchange_api_capsule(const DLPackExchangeAPI& table) noexcept {
  return PyCapsule_New(const_cast<DLPackExchangeAPI*>(&table), kExchangeApiName, nullptr);
}

py::TensorObject* tensor_from_managed(DLManagedTensorVersioned* managed) {
  Tensor tensor;
  py::throw_if_bad(import_managed(managed, tensor), kOperation);
  const DLDevice device = tensor.dl.device;
  if (is_cuda(device)) tensor.ready = Ordering::on_stream(cuda::current_stream(device.device_id));
  return py::wrap_tensor(std::move(tensor), py::Protocol::kDLPack, nullptr);
}

PyObject* give_to_exchange(py::TensorObject* self, const DLPackExchangeAPI* api, const char* operation) noexcept {
  return py::guarded([&]() -> PyObject* {
    order_for_api(self, api, operation);
    DLManagedTensorVersioned* managed = share_versioned(self);
    if (managed == nullptr) return nullptr;
    // Who owns the struct when to_py_object fails is unspecified: PyTorch leaves it to the caller, others consume
    // it. The deleter tells which it was, so that it runs exactly once either way.
    bool deleted = false;
    reinterpret_cast<ExportBlock*>(managed)->deleted = &deleted;
    void* out = nullptr;
    const int rc = api->managed_tensor_to_py_object_no_sync(managed, &out);
    if (!deleted) reinterpret_cast<ExportBlock*>(managed)->deleted = nullptr;
    if (rc == 0 && out != nullptr) return static_cast<PyObject*>(out);
    if (!deleted) {
      py::ErrorGuard guard;
      managed->deleter(managed);
    }
    if (PyErr_Occurred() == nullptr)
      py::raise(operation, ErrorCode::kRefused, "the consumer's exchange API failed and set no error");
    return nullptr;
  });
}

}  // namespace dlbridge::dlpack
