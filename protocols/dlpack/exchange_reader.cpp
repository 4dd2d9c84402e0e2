// The C exchange API of DLPack 1.3, consumer side.
#include <string>

#include "dlbridge/cuda_order.h"
#include "dlbridge/dlpack_codec.h"
#include "protocols/common/errors.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::dlpack {

using py::Read;

namespace {

Read report_failure(PyObject* object, py::ReadCall& call) {
  if (PyErr_Occurred() != nullptr) return Read::kFailed;
  return call.refuse(
      refused("the C exchange API of " + py::type_name(object) + " failed and set no error (DLPack 1.3 asks for one)"));
}

}  // namespace

// The stream its framework works on for this device now: asked every time (DLPack 1.3), never cached.
bool query_cuda_stream(const DLPackExchangeAPI* api, py::ReadCall& call, Tensor& tensor) {
  if (api->current_work_stream == nullptr) return true;
  void* stream = nullptr;
  if (api->current_work_stream(tensor.dl.device.device_type, tensor.dl.device.device_id, &stream) != 0) {
    if (PyErr_Occurred() == nullptr)
      call.refuse(refused("current_work_stream of the producer's exchange API failed without an error. Use "
                          "protocol='dlpack' of another version, or synchronise first"));
    return false;
  }
  tensor.ready = Ordering::on_stream(reinterpret_cast<StreamHandle>(stream));
  return true;
}

const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type) {
  // Subclasses inherit the attribute but not the promise: only a type's own table counts, so look in its __dict__.
  if (type->tp_dict == nullptr) return nullptr;
  const py::Ref capsule = py::dict_item(type->tp_dict, py::names.dlpack_c_exchange_api);
  PyErr_Clear();
  if (!capsule || !PyCapsule_IsValid(capsule.get(), kExchangeApiName)) return nullptr;
  auto* header = static_cast<const DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule.get(), kExchangeApiName));
  for (int depth = 0; header != nullptr && depth < 16; ++depth) {
    if (header->version.major == kDLPackVersion.major) {
      const auto* api = reinterpret_cast<const DLPackExchangeAPI*>(header);
      const bool readable = api->managed_tensor_from_py_object_no_sync != nullptr;
      return readable ? api : nullptr;
    }
    if (header->version.major < kDLPackVersion.major) return nullptr;  // only older tables follow
    header = reinterpret_cast<const DLPackExchangeAPIHeader*>(header->prev_api);
  }
  return nullptr;
}

Read read_exchange(PyObject* object, const DLPackExchangeAPI* api, py::ReadCall& call, py::TensorObject* self) {
  DLManagedTensorVersioned* managed = nullptr;
  if (api->managed_tensor_from_py_object_no_sync(object, &managed) != 0 || managed == nullptr)
    return report_failure(object, call);
  if (Status status = import_managed(managed, self->tensor); !status.ok()) return call.refuse(std::move(status));
  if (!query_stream(api, call, self->tensor)) return Read::kFailed;
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::dlpack
