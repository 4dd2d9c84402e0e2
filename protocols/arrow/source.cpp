#include "protocols/arrow/source.h"

#include <cstring>
#include <string>
#include <utility>

#include "dlbridge/cuda_order.h"

namespace dlbridge::arrow_c {

using py::Read;

namespace {

constexpr char kStreamMethod[] = "__arrow_c_stream__";

// A negative or a positive errno, with the producer's own words where it has any.
Status stream_failed(Owned<ArrowArrayStream>& stream, const char* function, int code) {
  const char* said = stream.value.get_last_error != nullptr ? stream.value.get_last_error(&stream.value) : nullptr;
  return refused(std::string("the Arrow stream's ") + function + " failed with " + std::to_string(code) + " (" +
                 std::strerror(code) + "): " + (said != nullptr ? said : "the producer gives no reason"));
}

Status check_stream(const ArrowArrayStream& stream) {
  if (stream.get_schema != nullptr && stream.get_next != nullptr) return {};
  return malformed("the Arrow stream has no get_schema or no get_next. This must be fixed in the producer");
}

}  // namespace

Read Source::open(PyObject* object, py::ReadCall& call) {
  const struct {
    PyObject* name;
    const char* method;
  } ways[] = {{py::names.arrow_c_device_array, "__arrow_c_device_array__"},
              {py::names.arrow_c_stream, kStreamMethod},
              {py::names.arrow_c_array, "__arrow_c_array__"}};
  for (const auto& way : ways) {
    const py::Ref method = py::optional_attribute(object, way.name);
    if (!method && PyErr_Occurred() != nullptr) return Read::kFailed;
    if (!method) continue;
    const py::Ref given(py::outlive_thread_exit([&] { return PyObject_CallNoArgs(method.get()); }));
    if (!given) return Read::kFailed;
    const bool opened = way.name == py::names.arrow_c_stream
                            ? start(given.get(), call)
                            : open_pair(given.get(), way.method, way.name == py::names.arrow_c_device_array, call);
    return opened ? Read::kDone : Read::kFailed;
  }
  return Read::kAbsent;
}

Read Source::open_stream(PyObject* object, py::ReadCall& call) {
  const py::Ref given(
      py::outlive_thread_exit([&] { return PyObject_CallMethodNoArgs(object, py::names.arrow_c_stream); }));
  return given && start(given.get(), call) ? Read::kDone : Read::kFailed;
}

bool Source::open_pair(PyObject* pair, const char* method, bool on_device, py::ReadCall& call) {
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
    call.refuse(ErrorCode::kWrongType, std::string(method) + "() gave " + py::type_name(pair) +
                                           ", not a pair of capsules. This must be fixed in the producer");
    return false;
  }
  PyObject* const array = PyTuple_GET_ITEM(pair, 1);
  if (!take_capsule(PyTuple_GET_ITEM(pair, 0), method, call, schema)) return false;
  arrays.emplace_back();
  if (!on_device) return take_capsule(array, method, call, arrays.front());
  Owned<ArrowDeviceArray> placed;
  if (!take_capsule(array, method, call, placed)) return false;
  Status status = device_of(placed.value, device);
  if (status.ok()) ready = ordering_of(placed.value);
  if (status.ok() && is_host(device) && !ready.is_ready()) {  // whoever reads host memory asks for no event
    const py::GilRelease released;
    status = cuda::synchronize(std::exchange(ready, Ordering::ready()), 0);
  }
  if (status.ok()) {
    arrays.front() = Owned<ArrowArray>(placed.value.array);
    return true;
  }
  call.refuse(std::move(status));
  return false;
}

bool Source::start(PyObject* capsule, py::ReadCall& call) {
  if (!take_capsule(capsule, kStreamMethod, call, stream_)) return false;
  Status status = check_stream(stream_.value);
  if (status.ok()) {
    // A producer may run queries on threads of its own, which want the GIL for Python functions in them.
    const py::GilRelease released;
    const int code = stream_.value.get_schema(&stream_.value, &schema.value);
    if (code != 0) {
      schema.value.release = nullptr;  // it is not to be looked at
      status = stream_failed(stream_, "get_schema()", code);
    }
  }
  if (status.ok()) return true;
  call.refuse(std::move(status));
  return false;
}

Status Source::load() {
  if (!stream_.there()) return {};
  const py::GilRelease released;
  for (;;) {
    Owned<ArrowArray> next;
    const int code = stream_.value.get_next(&stream_.value, &next.value);
    if (code != 0) {
      next.value.release = nullptr;
      return stream_failed(stream_, "get_next()", code);
    }
    if (!next.there()) break;  // the specification: the end
    arrays.push_back(std::move(next));
  }
  stream_.reset();
  return {};
}

}  // namespace dlbridge::arrow_c
