#include "python/src/nd/kernels/launch.h"

#include <string>

#include "dlbridge/cuda_order.h"
#include "ndarray/runtime/lifetime.h"
#include "python/src/bridge.h"
#include "python/src/nd/runtime/runtime.h"

namespace dlbridge::py::nd {

namespace {

// The stream that stands for the calling thread's default stream: see core::work_stream().
StreamHandle own_thread_stream(int device) {
  const StreamHandle before = cuda::current_stream(device);
  cuda::set_current_stream(device, kPerThreadStream);
  const StreamHandle own = core::work_stream({kDLCUDA, device});
  cuda::set_current_stream(device, before);
  return own;
}

// The `device_id` of a stream object, -1 where it has none.
long device_of_stream(PyObject* stream) {
  static constinit InternedName name("device_id");
  const Ref id = optional_attribute(stream, checked(name.get()));
  const long number = id && PyLong_Check(id.get()) ? PyLong_AsLong(id.get()) : -1;
  checked(PyErr_Occurred() == nullptr);
  return number;
}

Status acquire_one(const Tensor& tensor, StreamHandle stream) {
  if (core::Storage* storage = core::storage_of(tensor); storage != nullptr) [[likely]]
    return core::acquire(*storage, stream);
  return cuda::order(stream, tensor.ready, tensor.dl.device.device_id);
}

Status hand_back_one(const Tensor& tensor, StreamHandle stream) {
  if (core::storage_of(tensor) != nullptr) [[likely]]
    return {};
  const Ordering ready = tensor.ready.settled();
  if (ready.kind != Ordering::Kind::kOnStream || ready.handle == stream) return {};
  return cuda::order(ready.handle, Ordering::on_stream(stream), tensor.dl.device.device_id);
}

}  // namespace

ArrayUses::~ArrayUses() {
  for (int u = 0; u < count_; ++u) Py_XDECREF(inline_[u].held);
  for (const Use& use : more_) Py_XDECREF(use.held);
  for (core::Storage* storage : storages_) core::release(storage);
}

void ArrayUses::add(const Tensor& tensor, PyObject* held) {
  if (count_ < kInline) [[likely]]
    inline_[count_++] = {&tensor, held};
  else more_.push_back({&tensor, held});
}

void ArrayUses::add(core::Storage* storage) { storages_.push_back(storage); }

Status ArrayUses::acquire(StreamHandle stream) const {
  for (int u = 0; u < count_; ++u) DLBRIDGE_TRY(acquire_one(*inline_[u].tensor, stream));
  for (const Use& use : more_) DLBRIDGE_TRY(acquire_one(*use.tensor, stream));
  for (core::Storage* storage : storages_) DLBRIDGE_TRY(core::acquire(*storage, stream));
  return {};
}

Status ArrayUses::hand_back(StreamHandle stream) const {
  for (int u = 0; u < count_; ++u) DLBRIDGE_TRY(hand_back_one(*inline_[u].tensor, stream));
  for (const Use& use : more_) DLBRIDGE_TRY(hand_back_one(*use.tensor, stream));
  return {};
}

Status launch_ordered(const LaunchRequest& request, void** parameters, const ArrayUses& uses) {
  const core::LaunchLimits* limits = nullptr;
  const core::Function& function = request.function;
  DLBRIDGE_TRY(core::launch_limits(function.device, limits));
  DLBRIDGE_TRY(core::check_launch(function, *limits, request.grid, request.block, request.shared));
  if (request.grid.x == 0 || request.grid.y == 0 || request.grid.z == 0) return {};  // no block, no work
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(function.device));
  core::UseGuard alone;
  alone.enter();
  DLBRIDGE_TRY(uses.acquire(request.stream));
  DLBRIDGE_TRY(core::launch(function, request.grid, request.block, request.shared,
                            reinterpret_cast<cuda::CUstream>(request.stream), parameters, request.cooperative));
  return uses.hand_back(request.stream);
}

StreamHandle resolve_launch_stream(PyObject* argument, int device, const char* operation) {
  if (argument == nullptr || argument == Py_None) [[likely]]
    return core::work_stream({kDLCUDA, device});
  const StreamHandle stream = parse_stream_object(argument, device);
  const long owner = PyLong_Check(argument) ? -1 : device_of_stream(argument);
  if (owner >= 0 && owner != device)
    throw_issue(operation, ErrorCode::kMalformed,
                "the stream belongs to cuda:" + std::to_string(owner) +
                    ", and the kernel runs on cuda:" + std::to_string(device) + ". Use a stream of that device");
  return stream == kPerThreadStream ? own_thread_stream(device) : stream;
}

TensorObject* read_foreign(PyObject* object) {
  PyObject* tensor = read_any(object, "kernel argument");
  if (tensor == nullptr) {
    checked(PyErr_ExceptionMatches(exceptions.protocol) != 0);
    PyErr_Clear();
  }
  return as_tensor(tensor);
}

}  // namespace dlbridge::py::nd
