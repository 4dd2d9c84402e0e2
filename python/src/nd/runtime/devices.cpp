// Devices in Python, the hooks of the runtime, and the order of registration.
#include "python/src/nd/runtime/runtime.h"

#include <string>
#include <utility>

#include "dlbridge/cuda_peer.h"
#include "ndarray/core/backend.h"
#include "ndarray/runtime/lifetime.h"
#include "protocols/common/streams.h"
#include "python/src/nd/runtime/deferred.h"
#include "python/src/nd/runtime/objects.h"

namespace dlbridge::py::nd {

namespace {

using core::driver;

void collect_garbage() {
  if (!interpreter_alive()) return;
  const GilHold gil;
  ErrorGuard guard;
  // Not PyGC_Collect(), which does nothing where the user has switched automatic collection off.
  const Ref gc(PyImport_ImportModule("gc"));
  const Ref done(gc ? PyObject_CallMethod(gc.get(), "collect", nullptr) : nullptr);
  PyErr_Clear();
  run_deferred();
}

void* let_go_of_gil() {
  return interpreter_alive() && PyGILState_Check() != 0 ? static_cast<void*>(PyEval_SaveThread()) : nullptr;
}

void take_gil_back(void* state) {
  outlive_thread_exit([state] { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); });
}

#ifdef Py_GIL_DISABLED
constinit PyMutex uses_mutex{};

bool lock_uses() {
  if (!interpreter_alive()) return false;                  // a thread that has gone for good may have it
  outlive_thread_exit([] { PyMutex_Lock(&uses_mutex); });  // a thread that waits stops no collector
  return true;
}

void unlock_uses() { PyMutex_Unlock(&uses_mutex); }
#else
constexpr bool (*lock_uses)() = nullptr;
constexpr void (*unlock_uses)() = nullptr;
#endif

thread_local int device_blocks = 0;

void enter_device(int device) {
  throw_if_bad(core::require_runtime(), "Device");
  CUcontext context = nullptr;
  throw_if_bad(cuda::primary_context(device, context), "Device");
  check_call(cuda::functions().ctx_push_current(context), "cuCtxPushCurrent", "Device");
  ++device_blocks;
}

void leave_device() {
  if (device_blocks > 0) --device_blocks;  // 0: the block was entered on another thread
  CUcontext popped = nullptr;
  check_call(cuda::functions().ctx_pop_current(&popped), "cuCtxPopCurrent", "Device");
}

void use_device(int device) {
  throw_if_bad(core::require_runtime(), "Device.use()");
  CUcontext context = nullptr;
  throw_if_bad(cuda::primary_context(device, context), "Device.use()");
  check_call(driver().ctx_set_current(context), "cuCtxSetCurrent", "Device.use()");
}

void synchronize_device(int device) {
  throw_if_bad(core::require_runtime(), "Device.synchronize()");
  const OnDevice here(device, "Device.synchronize()");
  CUresult result;
  {
    const GilRelease released;
    result = driver().ctx_synchronize();
  }
  check_call(result, "cuCtxSynchronize", "Device.synchronize()");
}

int attribute(int device, int number) {
  throw_if_bad(cuda::require_driver(), "Device.attributes");
  int value = 0;
  check_call(cuda::functions().device_get_attribute(&value, number, device), "cuDeviceGetAttribute",
             "Device.attributes");
  return value;
}

pyb::dict properties(int device) {
  throw_if_bad(cuda::require_driver(), "Device");
  char name[256] = {};
  char bus[32] = {};
  std::size_t total = 0;
  core::DeviceUuid uuid{};
  check_call(driver().device_get_name(name, sizeof name, device), "cuDeviceGetName", "Device");
  check_call(driver().device_total_mem(&total, device), "cuDeviceTotalMem", "Device");
  check_call(driver().device_get_uuid(&uuid, device), "cuDeviceGetUuid", "Device");
  check_call(driver().device_get_pci_bus_id(bus, sizeof bus, device), "cuDeviceGetPCIBusId", "Device");
  pyb::dict out;
  out["name"] = std::string(name);
  out["total_memory"] = total;
  out["uuid"] = pyb::bytes(reinterpret_cast<const char*>(uuid.bytes), sizeof uuid.bytes);
  out["pci_bus_id"] = std::string(bus);
  return out;
}

pyb::tuple memory_info(int device) {
  throw_if_bad(core::require_runtime(), "Device.mem_info");
  const OnDevice here(device, "Device.mem_info");
  std::size_t free = 0;
  std::size_t total = 0;
  check_call(driver().mem_get_info(&free, &total), "cuMemGetInfo", "Device.mem_info");
  return pyb::make_tuple(free, total);
}

bool can_access_peer(int device, int peer) {
  chosen_device("can_access_peer()", device);
  chosen_device("can_access_peer()", peer);
  int can = 0;
  if (device == peer) return true;
  check_call(cuda::functions().device_can_access_peer(&can, device, peer), "cuDeviceCanAccessPeer",
             "can_access_peer()");
  return can != 0;
}

pyb::tuple priority_range(int device) {
  const OnDevice here(device, "Device.stream_priority_range");
  int least = 0;
  int greatest = 0;
  check_call(driver().ctx_get_stream_priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange",
             "Device.stream_priority_range");
  return pyb::make_tuple(least, greatest);
}

std::size_t context_limit(int device, int which, std::optional<std::size_t> value) {
  const OnDevice here(device, "device limit");
  if (value) check_call(driver().ctx_set_limit(which, *value), "cuCtxSetLimit", "device limit");
  std::size_t now = 0;
  check_call(driver().ctx_get_limit(&now, which), "cuCtxGetLimit", "device limit");
  return now;
}

}  // namespace

bool inside_device_block() noexcept { return device_blocks > 0; }

int chosen_device(const char* operation, std::optional<int> device) {
  throw_if_bad(core::require_runtime(), operation);
  int current = 0;
  if (!device) {
    throw_if_bad(cuda::current_device(current), operation);
    return current;
  }
  if (*device < 0 || *device >= cuda::device_count()) throw_if_bad(cuda::detail::no_such_device(*device), operation);
  return *device;
}

void init_devices(pyb::module_& m) {
  m.def("cuda_is_available", &cuda::available);
  m.def("device_count", &cuda::device_count);
  m.def("driver_version", &cuda::driver_version);
  m.def("unavailable_reason", &cuda::unavailable_reason);
  m.def("kernel_library", [] {
    const core::Backend* backend = nullptr;
    const Status status = core::backend_for({kDLCUDA, 0}, backend);
    return std::pair(core::kernel_library(), status.ok() ? std::string() : status.message());
  });
  m.def("current_device", [] { return chosen_device("current device"); });
  m.def("check_device", [](int device) { chosen_device("Device()", device); });
  m.def("enter_device", &enter_device);
  m.def("leave_device", &leave_device);
  m.def("use_device", &use_device);
  m.def("synchronize_device", &synchronize_device);
  m.def("device_attribute", &attribute);
  m.def("device_properties", &properties);
  m.def("device_memory_info", &memory_info);
  m.def("can_access_peer", &can_access_peer);
  m.def("enable_peer_access",
        [](int device, int peer) { throw_if_bad(cuda::ensure_peer(device, peer), "enable_peer_access()"); });
  m.def("stream_priority_range", &priority_range);
  m.def("context_limit", &context_limit, pyb::arg("device"), pyb::arg("which"), pyb::arg("value") = pyb::none());
  m.def("profiler_start", [] { check_call(driver().profiler_start(), "cuProfilerStart", "profiler"); });
  m.def("profiler_stop", [] { check_call(driver().profiler_stop(), "cuProfilerStop", "profiler"); });
}

void init_runtime(pyb::module_ m) {
  core::hooks() = {collect_garbage, let_go_of_gil, take_gil_back, lock_uses, unlock_uses};
  init_devices(m);
  init_events(m);
  init_streams(m);
  init_host_functions(m);
  init_graphs(m);
  init_memory(m);
  init_pools(m);
  init_allocators(m);
  // From here on the driver is left alone: the process gives everything back by itself.
  const auto shut_down = pyb::cpp_function([] {
    wait_for_host_functions();
    core::shut_down();
  });
  pyb::module_::import("atexit").attr("register")(shut_down);
}

}  // namespace dlbridge::py::nd
