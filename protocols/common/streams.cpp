#include "protocols/common/streams.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "dlbridge/cuda_events.h"
#include "dlbridge/cuda_order.h"
#include "protocols/common/errors.h"

namespace dlbridge::py {

Switches switches;

namespace {

// (version, handle) of an object with __cuda_stream__, which cuda.core has as a method and older code as a property.
bool read_cuda_stream(PyObject* argument, const char* operation, StreamUse use, Ref& handle) {
  Ref pair(outlive_thread_exit([&] { return PyObject_GetAttr(argument, names.cuda_stream); }));
  if (!pair) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    PyErr_Clear();
    raise(operation, ErrorCode::kWrongType,
          "stream is " + type_name(argument) + "; give None, " + (use == StreamUse::kOrder ? "-1, " : "") +
              "a CUDA stream handle as int, or an object with __cuda_stream__");
    return false;
  }
  if (PyCallable_Check(pair.get())) pair = Ref(outlive_thread_exit([&] { return PyObject_CallNoArgs(pair.get()); }));
  if (!pair) return false;
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
    raise(operation, ErrorCode::kWrongType,
          "__cuda_stream__ of " + type_name(argument) +
              " is not a (version, handle) pair. This must be fixed in the object");
    return false;
  }
  handle = Ref::borrow(PyTuple_GET_ITEM(pair.get(), 1));
  PyObject* const version = PyTuple_GET_ITEM(pair.get(), 0);
  if (!PyLong_Check(version) || PyObject_IsTrue(version) != 0) {
    raise(operation, ErrorCode::kWrongType,
          "__cuda_stream__ of " + type_name(argument) +
              " gives another version of the protocol than 0, the only one. This must be fixed in the object");
    return false;
  }
  return true;
}

bool parse_handle(PyObject* number, bool from_protocol, const char* operation, StreamUse use, StreamArgument& out) {
  const long long value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  if (value == -1 && !from_protocol && use == StreamUse::kWork) {
    raise(operation, ErrorCode::kMalformed,
          "stream -1 says that no synchronisation is wanted, and names no stream to work on. Give None, a CUDA stream "
          "handle as int, or an object with __cuda_stream__");
    return false;
  }
  if (value == -1 && !from_protocol) {
    out.kind = StreamArgument::Kind::kNoSync;
    return true;
  }
  if (value < 0 || (value == 0 && !from_protocol)) {
    raise(operation, ErrorCode::kMalformed,
          "stream " + std::to_string(value) +
              " is not allowed: 0 could mean either default stream (array API). On a CUDA device use 1 for the legacy "
              "default stream, 2 for the per-thread one, or a stream's handle" +
              (use == StreamUse::kOrder ? "; -1 asks for no synchronisation, and on the host leave stream out" : ""));
    return false;
  }
  out = {StreamArgument::Kind::kHandle, value == 0 ? kLegacyStream : static_cast<StreamHandle>(value)};
  return true;
}

}  // namespace

bool parse_stream(PyObject* argument, const char* operation, StreamArgument& out, StreamUse use) {
  out = {};
  if (argument == nullptr || argument == Py_None) return true;
  if (PyLong_Check(argument) && !PyBool_Check(argument)) return parse_handle(argument, false, operation, use, out);
  Ref handle;
  if (!read_cuda_stream(argument, operation, use, handle)) return false;
  const Ref number(outlive_thread_exit([&] { return PyNumber_Index(handle.get()); }));
  return number && parse_handle(number.get(), true, operation, use, out);
}

Status check_stream(StreamHandle stream) {
  static constinit Atomic<StreamHandle> last_good(kLegacyStream);
  if (stream == last_good) return {};
  DLBRIDGE_TRY(cuda::check_stream_handle(stream));
  last_good.store(stream);
  return {};
}

struct StreamNotes {
  cuda::CUevent event = nullptr;    // of tensor.ready, where it is this object's own
  std::vector<StreamHandle> users;  // whose work uses the memory until the tensor dies
};

namespace {
StreamNotes& notes_of(TensorObject* self) {
  if (self->notes == nullptr) self->notes = new StreamNotes;
  return *self->notes;
}
}  // namespace

Status settle_order(TensorObject* self) {
  Ordering& ready = self->tensor.ready;
  const int device = self->tensor.dl.device.device_id;
  if (ready.kind != Ordering::Kind::kOnStream || cuda::is_lasting_stream(ready.handle)) return {};
  if (!cuda::available()) return {};  // then nobody can use the handle either
  if (!cuda::detail::may_be_stream(ready.handle)) return cuda::detail::no_stream(ready.handle);
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  cuda::detail::Capture capture = cuda::detail::Capture::kNone;
  DLBRIDGE_TRY(cuda::detail::capture_state(ready.handle, capture));
  if (capture != cuda::detail::Capture::kNone) return {};
  StreamNotes& notes = notes_of(self);
  cuda::CUevent event = nullptr;
  DLBRIDGE_TRY(cuda::detail::take_event(device, event));
  if (cuda::functions().event_record(event, cuda::detail::as_stream(ready.handle)) != cuda::kSuccess) [[unlikely]] {
    // A stream of a context other than the primary one takes no event of ours.
    cuda::detail::keep_event(device, event);
    return cuda::move_to_relay(ready, device);
  }
  notes.event = event;
  ready = Ordering::at_event(reinterpret_cast<std::uintptr_t>(event));
  return {};
}

PyObject* settled_slowly(TensorObject* self, const char* operation) {
  Ref owned(as_object(self));
  const Status status = settle_order(self);
  if (status.ok()) [[likely]]
    return owned.release();
  raise(operation, status.issue());
  const ErrorGuard guard;
  owned = Ref();
  return nullptr;
}

void settle_notes(TensorObject* self) noexcept {
  StreamNotes* notes = std::exchange(self->notes, nullptr);
  for (const StreamHandle user : notes->users) try {
      // A capture of the user's, a driver that has shut down: there is nobody left to tell.
      static_cast<void>(order_producer(self->tensor, user));
    } catch (...) {  // no memory for the words of an error
    }
  if (notes->event != nullptr) cuda::detail::keep_event(self->tensor.dl.device.device_id, notes->event);
  delete notes;
}

Status order_producer(const Tensor& tensor, StreamHandle user) {
  const int device = tensor.dl.device.device_id;
  const Ordering ready = tensor.ready.settled();
  StreamHandle relay = 0;
  DLBRIDGE_TRY(cuda::relay_stream(device, relay));
  const bool is_known = ready.kind == Ordering::Kind::kOnStream && ready.handle != relay;
  return cuda::order(is_known ? ready.handle : kLegacyStream, Ordering::on_stream(user), device);
}

namespace {
// A stream that works on device memory: no None, no -1.
bool parse_user(const Tensor& tensor, PyObject* argument, const char* operation, StreamHandle& out) {
  StreamArgument stream;
  if (!parse_stream(argument, operation, stream)) return false;
  if (!is_cuda(tensor.dl.device)) {
    raise(operation, ErrorCode::kRefused,
          "the tensor is on " + device_name(tensor.dl.device) + ", where there are no streams. Leave the call out");
    return false;
  }
  if (stream.kind != StreamArgument::Kind::kHandle) {
    raise(operation, ErrorCode::kMalformed,
          "None and -1 name no stream. Give the stream that works on the tensor: a handle, 1 for the legacy default "
          "stream, or an object with __cuda_stream__");
    return false;
  }
  const Status status = check_stream(stream.handle);
  if (!status.ok()) raise(operation, status.issue());
  out = stream.handle;
  return status.ok();
}
}  // namespace

bool record_stream(TensorObject* self, PyObject* argument) {
  StreamHandle stream = 0;
  if (!parse_user(self->tensor, argument, "Tensor.record_stream()", stream)) return false;
  // Another thread may drop the tensor; the legacy default stream waits for the per-thread ones of all threads.
  if (stream == kPerThreadStream) stream = kLegacyStream;
  const CriticalSection of_self(as_object(self));
  std::vector<StreamHandle>& users = notes_of(self).users;
  for (const StreamHandle known : users)
    if (known == stream) return true;
  users.push_back(stream);
  return true;
}

bool hand_back(const Tensor& tensor, PyObject* argument) {
  StreamHandle stream = 0;
  if (!parse_user(tensor, argument, "use()", stream)) return false;
  const Status status = order_producer(tensor, stream);
  if (!status.ok()) raise("use()", status.issue());
  return status.ok();
}

bool order_for_consumer(const Tensor& tensor, const StreamArgument& consumer, const char* operation) {
  if (!is_cuda(tensor.dl.device)) {
    if (consumer.kind != StreamArgument::Kind::kHandle) return true;
    raise(operation, ErrorCode::kRefused,
          "the tensor is on " + device_name(tensor.dl.device) +
              ", where there are no streams: only stream=None and -1 are allowed (array API). Leave stream out");
    return false;
  }
  if (consumer.kind == StreamArgument::Kind::kNoSync) return true;
  // The array API: None is the legacy default stream.
  const StreamHandle stream = consumer.kind == StreamArgument::Kind::kNone ? kLegacyStream : consumer.handle;
  Status status = check_stream(stream);
  if (status.ok()) status = cuda::order(stream, tensor.ready, tensor.dl.device.device_id);
  if (status.ok()) return true;
  raise(operation, status.issue());
  return false;
}

void read_switches() noexcept {
  if (const char* sync = std::getenv("DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC"))
    switches.cuda_array_interface_sync = std::atoi(sync) != 0;
  if (const char* version = std::getenv("DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION"))
    switches.cuda_array_interface_export_version = std::atoi(version) == 2 ? 2 : 3;
  if (const char* version = std::getenv("DLBRIDGE_DLPACK_EXPORT_VERSION")) {
    char* end = nullptr;
    const long major = std::strtol(version, &end, 10);
    const long minor = end != nullptr && *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
    switches.dlpack_managed_as_cuda = major == 0 && minor < 6;
  }
}

}  // namespace dlbridge::py
