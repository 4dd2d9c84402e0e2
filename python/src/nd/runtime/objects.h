// What the binding files of the runtime share.
#pragma once

#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "dlbridge/cuda_driver.h"
#include "ndarray/runtime/driver.h"
#include "ndarray/runtime/storage.h"
#include "ndarray/runtime/streams.h"
#include "protocols/common/boundary.h"
#include "python/src/kit/pybind.h"

namespace dlbridge::py::nd {

namespace core = ::dlbridge::nd;
using core::CUcontext;
using core::CUdeviceptr;
using core::CUevent;
using core::CUresult;
using core::CUstream;

// One for each file of bindings.
void init_devices(pyb::module_& m);
void init_events(pyb::module_& m);
void init_streams(pyb::module_& m);
void init_host_functions(pyb::module_& m);
void init_graphs(pyb::module_& m);
void init_memory(pyb::module_& m);
void init_pools(pyb::module_& m);
void init_allocators(pyb::module_& m);

// The device the thread has selected, or a given one that exists.
int chosen_device(const char* operation, std::optional<int> device = std::nullopt);

// Makes a device current for its scope; throws where that fails.
class OnDevice {
 public:
  OnDevice(int device, const char* operation) { throw_if_bad(guard_.enter(device), operation); }

 private:
  cuda::DeviceGuard guard_;
};
// Throws where a function of the driver, named `function`, failed.
inline void check_call(CUresult result, const char* function, const char* operation) {
  throw_if_bad(cuda::check(result, function), operation);
}

// A CUDA stream in Python. An own one goes back to the runtime with the object.
struct StreamValue {
  StreamHandle handle = kLegacyStream;
  int device = -1;  // -1: a default stream, of whichever device is current
  std::optional<core::StreamKind> own;

  StreamValue() = default;
  StreamValue(const StreamValue&) = delete;
  StreamValue& operator=(const StreamValue&) = delete;
  ~StreamValue() {
    if (own) core::recycle_stream(*own, handle);
  }
  std::uintptr_t ptr() const noexcept { return handle == kLegacyStream ? 0 : handle; }
  int device_or_current(const char* operation) const { return device >= 0 ? device : chosen_device(operation); }
};
// Runs `call` with the stream's device current: the default streams are named by what is current.
CUresult on_device_of(const StreamValue& stream, const char* operation, const std::function<CUresult(CUstream)>& call);
struct OwnStream : StreamValue {};
struct ForeignStream : StreamValue {};

// Any stream argument; None is the current stream of `device`.
StreamHandle stream_argument(const pyb::object& stream, int device, const char* operation);
pyb::object current_stream_object(int device);

struct EventValue {
  CUevent event = nullptr;
  int device = 0;

  EventValue() = default;
  EventValue(const EventValue&) = delete;
  EventValue& operator=(const EventValue&) = delete;
  ~EventValue();
};
std::unique_ptr<EventValue> create_event(bool block, bool disable_timing);
void record_event(const EventValue& event, StreamHandle stream);
// The answer of a query; throws for anything but yes and not yet.
bool is_done(CUresult result, const char* function, const char* operation);

// At exit: waits until no host function is on its way to the interpreter, at most some seconds.
void wait_for_host_functions();

// Python objects that a captured graph calls: they live as long as the graph.
void keep_for_capture(std::uint64_t capture, pyb::object kept);
pyb::list take_kept(std::uint64_t capture);

// Memory in Python: holds one reference to a storage.
struct MemoryValue {
  core::Storage* storage = nullptr;

  MemoryValue() = default;
  explicit MemoryValue(core::Storage* stolen) noexcept : storage(stolen) {}
  MemoryValue(const MemoryValue&) = delete;
  MemoryValue& operator=(const MemoryValue&) = delete;
  ~MemoryValue() {
    if (storage != nullptr) core::release(storage);
  }
  std::uintptr_t ptr() const noexcept { return reinterpret_cast<std::uintptr_t>(storage->data); }
  std::size_t size() const noexcept { return storage->bytes; }
  int device() const noexcept { return storage->device.device_id; }
};
pyb::object make_pointer(core::Storage* stolen, std::ptrdiff_t offset = 0);
// Memory of `resource`, or null for the current one, to be used on the current stream of the current device.
pyb::object allocate_pointer(core::MemoryResource* resource, std::size_t bytes, const char* operation);

// A pool or an allocator in Python.
struct ResourceValue {
  core::MemoryResource* resource = nullptr;
};

}  // namespace dlbridge::py::nd
