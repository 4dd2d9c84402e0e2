#include "protocols/arrow/source.h"

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "dlbridge/cuda_order.h"

namespace dlbridge::arrow_c {

using py::Read;

namespace {

constexpr char kStreamMethod[] = "__arrow_c_stream__";

// A negative or a positive errno, with the producer's own words where it has any.
template <class Stream>
Status stream_failed(Owned<Stream>& stream, const char* function, int code) {
  const char* said = stream.value.get_last_error != nullptr ? stream.value.get_last_error(&stream.value) : nullptr;
  return refused(std::string("the Arrow stream's ") + function + " failed with " + std::to_string(code) + " (" +
                 std::strerror(code) + "): " + (said != nullptr ? said : "the producer gives no reason"));
}

template <class Stream>
Status check_stream(const Stream& stream, DLDevice& device) {
  if (stream.get_schema == nullptr || stream.get_next == nullptr)
    return malformed("the Arrow stream has no get_schema or no get_next. This must be fixed in the producer");
  if constexpr (requires { stream.device_type; }) return device_of(stream.device_type, 0, device);
  return {};
}

[[gnu::cold]] Status wrong_device(DLDevice array, ArrowDeviceType stream) {
  return malformed("the Arrow stream says device_type " + std::to_string(stream) + ", and an array in it is on " +
                   device_name(array) + ". This must be fixed in the producer");
}

}  // namespace

Read Source::open(PyObject* object, py::ReadCall& call) {
  const struct {
    PyObject* name;
    const char* method;
    bool (Source::*open)(PyObject*, const char*, py::ReadCall&);
  } ways[] = {
      {py::names.arrow_c_device_array, "__arrow_c_device_array__", &Source::open_pair<ArrowDeviceArray>},
      {py::names.arrow_c_device_stream, "__arrow_c_device_stream__", &Source::start<&Source::device_stream_>},
      {py::names.arrow_c_stream, kStreamMethod, &Source::start<&Source::stream_>},
      {py::names.arrow_c_array, "__arrow_c_array__", &Source::open_pair<ArrowArray>},
  };
  for (const auto& way : ways) {
    const py::Ref method = py::optional_attribute(object, way.name);
    if (!method && PyErr_Occurred() != nullptr) return Read::kFailed;
    if (!method) continue;
    const py::Ref given(py::outlive_thread_exit([&] { return PyObject_CallNoArgs(method.get()); }));
    return given && (this->*way.open)(given.get(), way.method, call) ? Read::kDone : Read::kFailed;
  }
  return Read::kAbsent;
}

Read Source::open_stream(PyObject* object, py::ReadCall& call) {
  const py::Ref given(
      py::outlive_thread_exit([&] { return PyObject_CallMethodNoArgs(object, py::names.arrow_c_stream); }));
  return given && start<&Source::stream_>(given.get(), kStreamMethod, call) ? Read::kDone : Read::kFailed;
}

// --- arrays ---------------------------------------------------------------------------------------------------------

Status Source::add(ArrowDeviceArray& given) {
  DLDevice where;
  DLBRIDGE_TRY(device_of(given, where));
  if (device_stream_.there() && given.device_type != device_stream_.value.device_type)
    return wrong_device(where, device_stream_.value.device_type);
  const bool rows = given.array.length != 0;
  if (rows || arrays.empty()) {
    if (has_rows_ && !same_device(where, device))
      return refused("the arrays of the Arrow stream are on " + device_name(device) + " and on " + device_name(where) +
                     ", and a tensor is on one device. Bring them to one first");
    device = where;
    ready = ordering_of(given);
    has_rows_ |= rows;
  }
  arrays.emplace_back(given.array);
  return {};
}

// Whoever reads host memory asks for no event. Called without the GIL.
Status Source::wait_on_host() {
  if (!is_host(device) || ready.is_ready()) return {};
  return cuda::synchronize(std::exchange(ready, Ordering::ready()), 0);
}

template <class Array>
bool Source::open_pair(PyObject* pair, const char* method, py::ReadCall& call) {
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
    call.refuse(ErrorCode::kWrongType, std::string(method) + "() gave " + py::type_name(pair) +
                                           ", not a pair of capsules. This must be fixed in the producer");
    return false;
  }
  if (!take_capsule(PyTuple_GET_ITEM(pair, 0), method, call, schema)) return false;
  Owned<Array> array;
  if (!take_capsule(PyTuple_GET_ITEM(pair, 1), method, call, array)) return false;
  if constexpr (std::is_same_v<Array, ArrowArray>) {
    arrays.push_back(std::move(array));
    return true;
  } else {
    Status status = add(array.value);
    if (status.ok() && !ready.is_ready()) {
      const py::GilRelease released;
      status = wait_on_host();
    }
    if (status.ok()) return true;
    call.refuse(std::move(status));
    return false;
  }
}

// --- streams --------------------------------------------------------------------------------------------------------

template <auto kStream>
bool Source::start(PyObject* capsule, const char* method, py::ReadCall& call) {
  auto& stream = this->*kStream;
  if (!take_capsule(capsule, method, call, stream)) return false;
  Status status = check_stream(stream.value, device);
  if (status.ok()) {
    // A producer may run queries on threads of its own, which want the GIL for Python functions in them.
    const py::GilRelease released;
    const int code = stream.value.get_schema(&stream.value, &schema.value);
    if (code != 0) {
      schema.value.release = nullptr;  // it is not to be looked at
      status = stream_failed(stream, "get_schema()", code);
    }
  }
  if (status.ok()) return true;
  call.refuse(std::move(status));
  return false;
}

template <class Stream>
Status Source::run(Owned<Stream>& stream) {
  constexpr bool kPlain = std::is_same_v<Stream, ArrowArrayStream>;
  const py::GilRelease released;
  for (;;) {
    Owned<std::conditional_t<kPlain, ArrowArray, ArrowDeviceArray>> next;
    const int code = stream.value.get_next(&stream.value, &next.value);
    if (code != 0) {
      base_of(next.value).release = nullptr;
      return stream_failed(stream, "get_next()", code);
    }
    if (!next.there()) break;  // the specification: the end
    if constexpr (kPlain) {
      arrays.push_back(std::move(next));
    } else {
      DLBRIDGE_TRY(add(next.value));
      DLBRIDGE_TRY(wait_on_host());
    }
  }
  stream.reset();
  return {};
}

Status Source::load() {
  if (stream_.there()) return run(stream_);
  return device_stream_.there() ? run(device_stream_) : Status();
}

}  // namespace dlbridge::arrow_c
