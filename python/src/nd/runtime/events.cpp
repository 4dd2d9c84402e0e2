// Events in Python, and Python functions that a stream calls.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "ndarray/runtime/lifetime.h"
#include "python/src/nd/runtime/deferred.h"
#include "python/src/nd/runtime/objects.h"

namespace dlbridge::py::nd {

using core::driver;

EventValue::~EventValue() {
  if (event != nullptr && core::is_running()) static_cast<void>(cuda::functions().event_destroy(event));
}

std::unique_ptr<EventValue> create_event(bool block, bool disable_timing) {
  auto out = std::make_unique<EventValue>();
  out->device = chosen_device("Event()");
  const OnDevice here(out->device, "Event()");
  const unsigned flags = (block ? core::kEventBlockingSync : 0) | (disable_timing ? cuda::kEventDisableTiming : 0);
  check_call(cuda::functions().event_create(&out->event, flags), "cuEventCreate", "Event()");
  return out;
}

void record_event(const EventValue& event, StreamHandle stream) {
  const OnDevice here(event.device, "Event.record()");
  check_call(cuda::functions().event_record(event.event, cuda::detail::as_stream(stream)), "cuEventRecord",
             "Event.record()");
}

bool is_done(CUresult result, const char* function, const char* operation) {
  if (result == core::kNotReady) return false;
  check_call(result, function, operation);
  return true;
}

CUresult on_device_of(const StreamValue& stream, const char* operation, const std::function<CUresult(CUstream)>& call) {
  const OnDevice here(stream.device_or_current(operation), operation);
  return call(cuda::detail::as_stream(stream.handle));
}

namespace {

float elapsed(const EventValue& start, const EventValue& end) {
  float milliseconds = 0;
  const CUresult result = driver().event_elapsed_time(&milliseconds, start.event, end.event);
  if (result == core::kNotReady)
    throw_issue("get_elapsed_time()", ErrorCode::kCuda,
                "the work before an event has not finished. Call end.synchronize() first");
  if (result == cuda::kInvalidHandle)
    throw_issue("get_elapsed_time()", ErrorCode::kCuda,
                "an event has not been recorded, or was made with disable_timing. Record both first");
  check_call(result, "cuEventElapsedTime", "get_elapsed_time()");
  return milliseconds;
}

void synchronize_event(const EventValue& event) {
  CUresult result;
  {
    const GilRelease released;
    result = cuda::functions().event_synchronize(event.event);
  }
  check_call(result, "cuEventSynchronize", "Event.synchronize()");
}

struct HostCall {
  PyObject* function;
  PyObject* argument;
  bool once;  // false: a graph calls it at every launch and keeps it
};

std::atomic<int> pending_host_calls{0};

// On a thread of the driver's, which must not call CUDA. The interpreter may be gone.
void run_host_call(void* data) {
  auto* call = static_cast<HostCall*>(data);
  const bool once = call->once;
  if (interpreter_alive()) {
    const GilHold gil;
    const Ref result(PyObject_CallOneArg(call->function, call->argument));
    if (!result) PyErr_WriteUnraisable(call->function);
    if (once) {
      Py_DECREF(call->function);
      Py_DECREF(call->argument);
    }
  }
  if (!once) return;
  delete call;
  pending_host_calls.fetch_sub(1, std::memory_order_relaxed);
}

void launch_host_function(const StreamValue& stream, const pyb::object& function, const pyb::object& argument) {
  if (PyCallable_Check(function.ptr()) == 0)
    throw_issue("Stream.launch_host_func()", ErrorCode::kWrongType, "the callback is not callable");
  const std::optional<std::uint64_t> capture = core::capture_of(stream.handle);
  auto call = std::make_unique<HostCall>(HostCall{function.ptr(), argument.ptr(), !capture});
  const CUresult result = on_device_of(stream, "Stream.launch_host_func()", [&](CUstream handle) {
    // The references first: the driver may call before this returns. It waits for the GIL then.
    Py_INCREF(function.ptr());
    Py_INCREF(argument.ptr());
    pending_host_calls.fetch_add(1, std::memory_order_relaxed);
    return driver().launch_host_func(handle, run_host_call, call.get());
  });
  if (result != cuda::kSuccess || capture) {
    pending_host_calls.fetch_sub(1, std::memory_order_relaxed);
    Py_DECREF(function.ptr());
    Py_DECREF(argument.ptr());
  }
  check_call(result, "cuLaunchHostFunc", "Stream.launch_host_func()");
  HostCall* queued = call.release();
  if (!capture) return;
  const pyb::capsule held(queued, [](void* data) { delete static_cast<HostCall*>(data); });
  keep_for_capture(*capture, pyb::make_tuple(function, argument, held));
}

void add_callback(const pyb::object& self, const pyb::object& callback, const pyb::object& argument) {
  const pyb::cpp_function relay([callback, self](const pyb::object& value) { callback(self, 0, value); });
  launch_host_function(self.cast<const StreamValue&>(), relay, argument);
}

}  // namespace

void wait_for_host_functions() {
  const GilRelease released;
  for (int i = 0; i < 5000 && pending_host_calls.load(std::memory_order_relaxed) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void init_events(pyb::module_& m) {
  pyb::class_<EventValue>(m, "Event",
                          "A point in the work of a stream.\n\nblock: synchronize() sleeps instead of "
                          "spinning. disable_timing: cheaper, and useless for get_elapsed_time().")
      .def(pyb::init(&create_event), pyb::arg("block") = false, pyb::arg("disable_timing") = false)
      .def_property_readonly("ptr", [](const EventValue& e) { return reinterpret_cast<std::uintptr_t>(e.event); })
      .def_readonly("device_id", &EventValue::device)
      .def(
          "record",
          [](const EventValue& e, const pyb::object& stream) {
            record_event(e, stream_argument(stream, e.device, "Event.record()"));
          },
          pyb::arg("stream") = pyb::none(), "Stands for the work queued on the stream (None: the current one) so far.")
      .def("synchronize", &synchronize_event, "Waits on the host.")
      .def("elapsed_time", [](const EventValue& e, const EventValue& end) { return elapsed(e, end); })
      .def_property_readonly("done", [](const EventValue& e) {
        return is_done(driver().event_query(e.event), "cuEventQuery", "Event.done");
      });
  m.def("get_elapsed_time", &elapsed, pyb::arg("start"), pyb::arg("end"), "Milliseconds between two events.");
}

void init_host_functions(pyb::module_& m) {
  const pyb::object base = m.attr("BaseStream");
  const auto method = [&](const char* name, auto function, const char* doc) {
    base.attr(name) = pyb::cpp_function(function, pyb::name(name), pyb::is_method(base), pyb::arg("callback"),
                                        pyb::arg("arg") = pyb::none(), doc);
  };
  method("launch_host_func", &launch_host_function,
         "Calls callback(arg) when the stream gets there. It must not call CUDA.");
  method("add_callback", &add_callback, "As launch_host_func, with callback(stream, 0, arg).");
}

}  // namespace dlbridge::py::nd
