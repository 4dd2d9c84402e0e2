// Streams in Python, and which one is current.
#include <functional>
#include <string>

#include "protocols/common/streams.h"
#include "protocols/common/threads.h"
#include "python/src/nd/module.h"
#include "python/src/nd/runtime/objects.h"
#include "python/src/nd/runtime/runtime.h"

namespace dlbridge::py::nd {

namespace {

using core::driver;

// ---- which stream is current: the handle is the bridge's, the object that keeps it is the thread state's

// {device: stream} of the calling thread, and under "entered" the streams of open with-blocks.
pyb::dict thread_streams() {
  PyObject* all = PyThreadState_GetDict();
  if (all == nullptr) throw std::bad_alloc();
  static constinit InternedName name("dlbridge.nd.streams");
  PyObject* const key = checked(name.get());
  PyObject* found = PyDict_GetItemWithError(all, key);  // borrowed: the thread's own dictionary
  if (found != nullptr) return pyb::reinterpret_borrow<pyb::dict>(found);
  checked(PyErr_Occurred() == nullptr);
  pyb::dict made;
  made["entered"] = pyb::list();
  checked(PyDict_SetItem(all, key, made.ptr()));
  return made;
}

void make_current(int device, const pyb::object& stream) {
  const auto& value = stream.cast<const StreamValue&>();
  thread_streams()[pyb::int_(device)] = stream;
  cuda::set_current_stream(device, value.handle);
}

// Work goes to the current device; a stream of another one would silently not be used.
int device_of_use(const StreamValue& stream, const char* operation) {
  const int current = chosen_device(operation);
  if (stream.device >= 0 && stream.device != current)
    throw_issue(operation, ErrorCode::kCuda,
                "the stream belongs to cuda:" + std::to_string(stream.device) + ", and the current device is cuda:" +
                    std::to_string(current) + ". Enter `with Device(" + std::to_string(stream.device) + ")` first");
  return current;
}

pyb::object use(const pyb::object& self) {
  make_current(device_of_use(self.cast<const StreamValue&>(), "Stream.use()"), self);
  return self;
}

pyb::object enter(const pyb::object& self) {
  const int device = device_of_use(self.cast<const StreamValue&>(), "Stream.__enter__()");
  pyb::list entered = thread_streams()["entered"];
  entered.append(pyb::make_tuple(device, current_stream_object(device)));
  make_current(device, self);
  return self;
}

void leave(const pyb::object&, const pyb::args&) {
  const pyb::list entered = thread_streams()["entered"];
  if (entered.empty()) throw_issue("Stream.__exit__()", ErrorCode::kMalformed, "the thread has not entered a stream");
  const pyb::tuple before = entered.attr("pop")();
  make_current(before[0].cast<int>(), before[1]);
}

// ---- making them

pyb::object make_stream(const char* cls, StreamHandle handle, int device) {
  const auto native = pyb::reinterpret_steal<pyb::object>(load_nd(nullptr));
  if (!native) throw pyb::error_already_set();
  return native.attr(cls)(handle == kLegacyStream ? 0 : handle, device);
}

std::unique_ptr<OwnStream> create(bool null, bool non_blocking, bool ptds, std::optional<Int<int>> priority) {
  auto out = std::make_unique<OwnStream>();
  if (null && ptds)
    throw_issue("Stream()", ErrorCode::kMalformed,
                "null and ptds name two different default streams. Give one of them");
  if (null || ptds) {
    out->handle = null ? kLegacyStream : kPerThreadStream;
    return out;
  }
  core::StreamKind kind{chosen_device("Stream()"), non_blocking, priority.value_or(Int<int>{})};
  throw_if_bad(core::create_stream(kind, out->handle), "Stream()");
  out->device = kind.device;
  out->own = kind;
  return out;
}

// The device of a stream that somebody else made, by its context.
int device_of_stream(StreamHandle stream, const char* operation) {
  CUcontext context = nullptr;
  check_call(cuda::functions().stream_get_ctx(cuda::detail::as_stream(stream), &context), "cuStreamGetCtx", operation);
  cuda::DeviceGuard guard;
  throw_if_bad(guard.enter_context(context), operation);
  int device = 0;
  check_call(cuda::functions().ctx_get_device(&device), "cuCtxGetDevice", operation);
  return device;
}

std::unique_ptr<ForeignStream> wrap(const pyb::object& ptr, Int<int> device_id) {
  const int device = device_id;
  auto out = std::make_unique<ForeignStream>();
  out->handle = stream_argument(ptr, 0, "ExternalStream()");
  out->device = device;
  if (device >= 0) chosen_device("ExternalStream()", device);
  if (out->handle <= kPerThreadStream) return out;
  const int actual = device_of_stream(out->handle, "ExternalStream()");
  if (device >= 0 && device != actual)
    throw_issue("ExternalStream()", ErrorCode::kMalformed,
                "device_id is " + std::to_string(device) + " and the stream was made on cuda:" +
                    std::to_string(actual) + ". Give that device, or leave device_id out");
  out->device = actual;
  return out;
}

// ---- what a stream does

void synchronize(const StreamValue& stream) {
  const CUresult result = on_device_of(stream, "Stream.synchronize()", [](CUstream handle) {
    const GilRelease released;
    return cuda::functions().stream_synchronize(handle);
  });
  check_call(result, "cuStreamSynchronize", "Stream.synchronize()");
}

bool stream_is_done(const StreamValue& stream) {
  const CUresult result =
      on_device_of(stream, "Stream.done", [](CUstream handle) { return driver().stream_query(handle); });
  return is_done(result, "cuStreamQuery", "Stream.done");
}

void wait_event(const StreamValue& stream, const EventValue& event) {
  const CUresult result = on_device_of(stream, "Stream.wait_event()", [&](CUstream handle) {
    return cuda::functions().stream_wait_event(handle, event.event, 0);
  });
  check_call(result, "cuStreamWaitEvent", "Stream.wait_event()");
}

void wait_stream(const StreamValue& stream, const pyb::object& other) {
  const int device = stream.device_or_current("Stream.wait_stream()");
  const StreamHandle before = stream_argument(other, device, "Stream.wait_stream()");
  const int before_device = before <= kPerThreadStream ? device : device_of_stream(before, "Stream.wait_stream()");
  throw_if_bad(cuda::order_across(stream.handle, device, Ordering::on_stream(before), before_device),
               "Stream.wait_stream()");
}

pyb::object record_on(const StreamValue& stream, const pyb::object& event) {
  const int device = stream.device_or_current("Stream.record()");
  pyb::object target = event;
  if (target.is_none()) {
    const OnDevice here(device, "Stream.record()");
    target = pyb::cast(create_event(false, false));
  }
  record_event(target.cast<const EventValue&>(), stream.handle);
  return target;
}

int priority_of(const StreamValue& stream) {
  int priority = 0;
  const CUresult result = on_device_of(
      stream, "Stream.priority", [&](CUstream handle) { return driver().stream_get_priority(handle, &priority); });
  check_call(result, "cuStreamGetPriority", "Stream.priority");
  return priority;
}

bool is_non_blocking(const StreamValue& stream) {
  unsigned flags = 0;
  const CUresult result = on_device_of(stream, "Stream.is_non_blocking",
                                       [&](CUstream handle) { return driver().stream_get_flags(handle, &flags); });
  check_call(result, "cuStreamGetFlags", "Stream.is_non_blocking");
  return (flags & cuda::kStreamNonBlocking) != 0;
}

bool same_stream(const StreamValue& a, const pyb::object& other) {
  if (!pyb::isinstance<StreamValue>(other)) return false;
  const auto& b = other.cast<const StreamValue&>();
  return a.handle == b.handle && (a.device < 0 || b.device < 0 || a.device == b.device);
}

std::string show(const pyb::object& self) {
  const auto& s = self.cast<const StreamValue&>();
  const std::string name = pyb::type::of(self).attr("__name__").cast<std::string>();
  const std::string where = s.device >= 0 ? " of CUDA Device " + std::to_string(s.device) : "";
  return "<" + name + " " + std::to_string(s.ptr()) + where + ">";
}

}  // namespace

pyb::object current_stream_object(int device) {
  const StreamHandle handle = cuda::current_stream(device);
  const pyb::dict streams = thread_streams();
  const pyb::int_ key(device);
  if (streams.contains(key)) {
    pyb::object kept = streams[key];
    if (kept.cast<const StreamValue&>().handle == handle) return kept;
  }
  return make_stream("ExternalStream", handle, handle <= kPerThreadStream ? -1 : device);
}

StreamHandle stream_argument(const pyb::object& stream, int device, const char* operation) {
  if (stream.is_none()) return cuda::current_stream(device);
  if (pyb::isinstance<StreamValue>(stream)) return stream.cast<const StreamValue&>().handle;
  if (pyb::isinstance<pyb::int_>(stream) && stream.equal(pyb::int_(0))) return kLegacyStream;
  // CuPy's and PyTorch's streams keep their handle in an attribute, once and not deeper.
  pyb::object given = stream;
  if (!pyb::isinstance<pyb::int_>(given) && !find_attribute(given, "__cuda_stream__")) {
    for (const char* name : {"ptr", "cuda_stream"})
      if (const pyb::object handle = find_attribute(stream, name); handle) {
        given = handle;
        break;
      }
    if (pyb::isinstance<pyb::int_>(given) && given.equal(pyb::int_(0))) return kLegacyStream;
  }
  StreamArgument parsed;
  checked(parse_stream(given.ptr(), operation, parsed));
  if (parsed.kind != StreamArgument::Kind::kHandle)
    throw_issue(operation, ErrorCode::kMalformed,
                "-1 is not a stream here. Give a stream, a handle, or None for the current one");
  throw_if_bad(check_stream(parsed.handle), operation);
  return parsed.handle;
}

StreamHandle parse_stream_object(PyObject* object, int device) {
  return without_pybind(
      [&] { return stream_argument(pyb::reinterpret_borrow<pyb::object>(object), device, "stream"); });
}

void init_streams(pyb::module_& m) {
  pyb::class_<StreamValue>(m, "BaseStream")
      .def_property_readonly("ptr", &StreamValue::ptr, "int: the CUstream; 0 for the legacy default stream.")
      .def_readonly("device_id", &StreamValue::device, "int: its device; -1 for a default stream.")
      .def_property_readonly("priority", &priority_of)
      .def_property_readonly("is_non_blocking", &is_non_blocking)
      .def("__cuda_stream__", [](const StreamValue& s) { return pyb::make_tuple(0, s.ptr()); })
      .def("__enter__", &enter)
      .def("__exit__", &leave)
      .def("use", &use, "Makes it the thread's current stream on the current device.")
      .def_property_readonly("done", &stream_is_done)
      .def("synchronize", &synchronize, "Waits on the host.")
      .def("record", &record_on, pyb::arg("event") = pyb::none(), "The event (a new one for None), recorded here.")
      .def("wait_event", &wait_event, pyb::arg("event"))
      .def("wait_stream", &wait_stream, pyb::arg("stream"), "Makes later work here wait for the other's work so far.")
      .def("__eq__", &same_stream, pyb::is_operator())
      .def(
          "__ne__", [](const StreamValue& s, const pyb::object& o) { return !same_stream(s, o); }, pyb::is_operator())
      .def("__hash__", [](const StreamValue& s) { return std::hash<StreamHandle>{}(s.handle); })
      .def("__repr__", &show);
  pyb::class_<ForeignStream, StreamValue>(m, "ExternalStream",
                                          "A stream that somebody else made.\n\n"
                                          "ptr: its address, which must stay valid, or an object with __cuda_stream__, "
                                          "which is kept alive. device_id: is checked.")
      .def(pyb::init(&wrap), pyb::arg("ptr"), pyb::arg("device_id") = -1, pyb::keep_alive<1, 2>());
  pyb::class_<OwnStream, StreamValue> own(m, "Stream",
                                          "A new stream of the current device.\n\n"
                                          "null, ptds: the legacy and the per-thread default stream instead.\n"
                                          "non_blocking: takes no part in the legacy stream's order.\n"
                                          "priority: lower numbers come first (Device.stream_priority_range).");
  own.def(pyb::init(&create), pyb::arg("null") = false, pyb::arg("non_blocking") = false, pyb::arg("ptds") = false,
          pyb::arg("priority") = pyb::none());
  own.def_static(
      "from_external", [](const pyb::object& stream) { return wrap(stream, {-1}); }, pyb::arg("stream"),
      pyb::keep_alive<0, 1>(), "An ExternalStream of any object with __cuda_stream__.");
  own.attr("null") = pyb::cast(create(true, false, false, std::nullopt));
  own.attr("ptds") = pyb::cast(create(false, false, true, std::nullopt));

  m.def(
      "get_current_stream",
      [](std::optional<Int<int>> device) {
        return current_stream_object(chosen_device("get_current_stream()", device));
      },
      pyb::arg("device_id") = pyb::none(), "The stream that the thread's work on the device goes to.");
}

}  // namespace dlbridge::py::nd
