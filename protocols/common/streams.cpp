#include "protocols/common/streams.h"

#include <cstdlib>
#include <string>

#include "dlbridge/cuda_order.h"
#include "protocols/common/errors.h"

namespace dlbridge::py {

Switches switches;

namespace {

// (version, handle) of an object with __cuda_stream__, which cuda.core has as a method and older code as a property.
bool read_cuda_stream(PyObject* argument, const char* operation, Ref& handle) {
  Ref pair(PyObject_GetAttr(argument, names.cuda_stream));
  if (!pair) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    PyErr_Clear();
    raise(operation, ErrorCode::kWrongType,
          "stream is " + type_name(argument) + "; give None, -1, a CUDA stream handle as int, or an object with "
                                               "__cuda_stream__");
    return false;
  }
  if (PyCallable_Check(pair.get())) pair = Ref(PyObject_CallNoArgs(pair.get()));
  if (!pair) return false;
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
    raise(operation, ErrorCode::kWrongType,
          "__cuda_stream__ of " + type_name(argument) + " is no (version, handle) pair. The object must mend it");
    return false;
  }
  handle = Ref::borrow(PyTuple_GET_ITEM(pair.get(), 1));
  return true;
}

bool parse_handle(PyObject* number, bool from_protocol, const char* operation, StreamArgument& out) {
  const long long value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  if (value == -1 && !from_protocol) {
    out.kind = StreamArgument::Kind::kNoSync;
    return true;
  }
  if (value < 0 || (value == 0 && !from_protocol)) {
    raise(operation, ErrorCode::kMalformed,
          "stream " + std::to_string(value) + " is not allowed: 0 could mean either default stream (array API). Use 1 "
                                              "for the legacy default stream, 2 for the per-thread one, -1 for no "
                                              "synchronisation, or a stream's handle");
    return false;
  }
  out = {StreamArgument::Kind::kHandle, value == 0 ? kLegacyStream : static_cast<StreamHandle>(value)};
  return true;
}

}  // namespace

bool parse_stream(PyObject* argument, const char* operation, StreamArgument& out) {
  out = {};
  if (argument == nullptr || argument == Py_None) return true;
  if (PyLong_Check(argument) && !PyBool_Check(argument)) return parse_handle(argument, false, operation, out);
  Ref handle;
  if (!read_cuda_stream(argument, operation, handle)) return false;
  const Ref number(PyNumber_Index(handle.get()));
  return number && parse_handle(number.get(), true, operation, out);
}

Status check_stream(StreamHandle stream) {
  static StreamHandle last_good = kLegacyStream;  // guarded by the GIL
  if (stream == last_good) return {};
  DLBRIDGE_TRY(cuda::check_stream_handle(stream));
  last_good = stream;
  return {};
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
