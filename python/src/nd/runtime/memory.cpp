// Memory and pointers into it in Python; page-locked host memory.
#include <cstring>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/cuda_peer.h"
#include "ndarray/runtime/async_pool.h"
#include "ndarray/runtime/caching_pool.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/transfer.h"
#include "python/src/nd/runtime/deferred.h"
#include "python/src/nd/runtime/objects.h"
#include "python/src/nd/runtime/runtime.h"

namespace dlbridge::py::nd {

namespace {

using core::Storage;

struct UnownedValue : MemoryValue {
  using MemoryValue::MemoryValue;
};
struct DirectValue : MemoryValue {
  using MemoryValue::MemoryValue;
};
struct ManagedValue : MemoryValue {
  using MemoryValue::MemoryValue;
};
struct PinnedValue : MemoryValue {
  using MemoryValue::MemoryValue;
};

struct PointerValue {
  pyb::object memory;  // a MemoryValue
  std::ptrdiff_t offset = 0;

  Storage* storage() const { return memory.cast<const MemoryValue&>().storage; }
  char* data() const { return reinterpret_cast<char*>(ptr()); }
  // In integers: a user's offset may leave the memory, which is for those to refuse who use the pointer.
  std::uintptr_t ptr() const {
    return reinterpret_cast<std::uintptr_t>(storage()->data) + static_cast<std::uintptr_t>(offset);
  }
  int device() const { return storage()->device.device_id; }
};

Storage* allocate(core::MemoryResource* resource, std::size_t bytes, const char* operation) {
  const DLDevice device{kDLCUDA, chosen_device(operation)};
  const StreamHandle stream = cuda::current_stream(device.device_id);
  Storage* storage = nullptr;
  const OnDevice here(device.device_id, operation);
  throw_if_bad(resource != nullptr ? core::allocate_storage(*resource, device, bytes, stream, storage)
                                   : core::allocate_storage(device, bytes, stream, storage),
               operation);
  return storage;
}

// The number behind an int or an object that has one: a ctypes pointer, another library's pointer.
std::uintptr_t address_of(const pyb::object& object, const char* operation) {
  pyb::object value = object;
  for (const char* name : {"ptr", "value"})
    if (PyIndex_Check(value.ptr()) == 0)
      if (const pyb::object inner = find_attribute(value, name); inner) value = inner;
  if (value.is_none()) return 0;  // ctypes.c_void_p of null
  if (!PyIndex_Check(value.ptr()))
    throw_issue(operation, ErrorCode::kWrongType,
                "the address is " + type_name(object.ptr()) + ". Give an int, a ctypes pointer or a MemoryPointer");
  const Ref number = owned(PyNumber_Index(value.ptr()));
  return checked_number(PyLong_AsSize_t(number.get()));
}

// Memory of somebody else, which `owner` keeps. The device is the driver's word where none is given.
Storage* adopt(std::uintptr_t address, std::size_t bytes, const pyb::object& owner, int device_id,
               const char* operation) {
  DLDevice device{kDLCUDA, device_id};
  if (device_id >= 0) {
    chosen_device(operation, device_id);
  } else if (address == 0) {
    device.device_id = chosen_device(operation);
  } else {
    throw_if_bad(cuda::device_of_pointer(reinterpret_cast<void*>(address), device), operation);
  }
  Owner held;
  if (!owner.is_none()) held = Owner(pyb::object(owner).release().ptr(), release_object);
  Storage* storage = core::adopt_storage(device, reinterpret_cast<void*>(address), bytes, 0, std::move(held));
  if (storage == nullptr) throw std::bad_alloc();
  return storage;
}

std::unique_ptr<UnownedValue> unowned(const pyb::object& ptr, Int<std::size_t> size, const pyb::object& owner,
                                      Int<int> device) {
  const char* operation = "UnownedMemory()";
  return std::make_unique<UnownedValue>(adopt(address_of(ptr, operation), size, owner, device, operation));
}

core::CachingPool& managed_pool() {
  static auto* pool = new core::CachingPool(core::MemoryKind::kManaged);
  return *pool;
}

std::unique_ptr<PointerValue> point_into(const pyb::object& memory, Int<std::ptrdiff_t> offset) {
  auto out = std::make_unique<PointerValue>();
  out->offset = offset;
  out->memory = memory;
  if (pyb::isinstance<MemoryValue>(memory)) return out;
  // Another library's memory object.
  const pyb::object size = find_attribute(memory, "size"), device = find_attribute(memory, "device_id");
  const pyb::object ptr = find_attribute(memory, "ptr");
  if (!ptr || !size || !pyb::isinstance<pyb::int_>(size))
    throw_issue("MemoryPointer()", ErrorCode::kWrongType,
                "mem is " + type_name(memory.ptr()) + ". Give memory of nd.cuda, or an object with ptr and size");
  out->memory =
      pyb::cast(unowned(ptr, {size.cast<std::size_t>()}, memory, device ? device.cast<Int<int>>() : Int<int>{-1}));
  return out;
}

// ---- copies

void check_room(const PointerValue& pointer, std::size_t bytes, const char* operation) {
  const std::size_t size = pointer.storage()->bytes;
  if (pointer.offset >= 0 && static_cast<std::size_t>(pointer.offset) <= size &&
      bytes <= size - static_cast<std::size_t>(pointer.offset))
    return;
  throw_issue(operation, ErrorCode::kMalformed,
              std::to_string(bytes) + " bytes at offset " + std::to_string(pointer.offset) + " leave the memory of " +
                  std::to_string(size) + " bytes. Copy less");
}

// The stream of the work on a pointer's memory, which waits for earlier uses of it. No other thread uses device memory
// until `uses` is left.
StreamHandle begin_use(core::UseGuard& uses, const PointerValue& pointer, std::size_t bytes, const pyb::object& stream,
                       const char* operation) {
  throw_if_bad(core::require_runtime(), operation);
  check_room(pointer, bytes, operation);
  const StreamHandle on = stream_argument(stream, pointer.device(), operation);
  const OnDevice here(pointer.device(), operation);
  uses.enter();
  throw_if_bad(core::acquire(*pointer.storage(), on), operation);
  return on;
}

// A copy to or from the host lets other threads in before it is queued: a use that one of them began meanwhile is
// joined, so that whoever gets the memory next waits for both.
void end_use(const PointerValue& pointer, StreamHandle on, const char* operation) {
  if (pointer.storage()->stream == on) [[likely]]
    return;
  const OnDevice here(pointer.device(), operation);
  throw_if_bad(core::acquire(*pointer.storage(), on), operation);
}

void copy_from_host(const PointerValue& self, const pyb::object& source, std::size_t bytes, const pyb::object& stream,
                    bool blocking) {
  const char* operation = "MemoryPointer.copy_from_host()";
  const auto* from = reinterpret_cast<const void*>(address_of(source, operation));
  core::UseGuard uses;
  const StreamHandle on = begin_use(uses, self, bytes, stream, operation);
  throw_if_bad(core::copy_to_device(self.data(), from, bytes, self.device(), on, blocking), operation);
  end_use(self, on, operation);
}

void copy_to_host(const PointerValue& self, const pyb::object& target, std::size_t bytes, const pyb::object& stream,
                  bool blocking) {
  const char* operation = "MemoryPointer.copy_to_host()";
  auto* to = reinterpret_cast<void*>(address_of(target, operation));
  core::UseGuard uses;
  const StreamHandle on = begin_use(uses, self, bytes, stream, operation);
  throw_if_bad(core::copy_to_host(to, self.data(), bytes, self.device(), on, blocking), operation);
  end_use(self, on, operation);
}

void copy_from_device(const PointerValue& self, const pyb::object& source, std::size_t bytes, const pyb::object& stream,
                      bool /*blocking*/) {
  const char* operation = "MemoryPointer.copy_from_device()";
  core::UseGuard uses;
  const StreamHandle on = begin_use(uses, self, bytes, stream, operation);
  if (!pyb::isinstance<PointerValue>(source)) {
    const std::uintptr_t address = address_of(source, operation);
    DLDevice device{kDLCUDA, self.device()};
    if (bytes > 0) throw_if_bad(cuda::device_of_pointer(reinterpret_cast<void*>(address), device), operation);
    throw_if_bad(cuda::copy_between_devices(self.data(), self.device(), reinterpret_cast<void*>(address),
                                            device.device_id, bytes, on),
                 operation);
    return;
  }
  const auto& from = source.cast<const PointerValue&>();
  check_room(from, bytes, operation);
  const int from_device = from.device();
  if (from_device == self.device()) {
    begin_use(uses, from, bytes, stream, operation);
    throw_if_bad(cuda::copy_between_devices(self.data(), from_device, from.data(), from_device, bytes, on), operation);
    return;
  }
  const StreamHandle before = begin_use(uses, from, bytes, pyb::none(), operation);
  throw_if_bad(cuda::order_across(on, self.device(), Ordering::on_stream(before), from_device), operation);
  throw_if_bad(cuda::copy_between_devices(self.data(), self.device(), from.data(), from_device, bytes, on), operation);
  // The source's memory is read until then.
  throw_if_bad(cuda::order_across(before, from_device, Ordering::on_stream(on), self.device()), operation);
}

void copy_from(const PointerValue& self, const pyb::object& source, std::size_t bytes, const pyb::object& stream,
               bool blocking) {
  if (pyb::isinstance<PointerValue>(source)) return copy_from_device(self, source, bytes, stream, blocking);
  copy_from_host(self, source, bytes, stream, blocking);
}

void memset_on(const PointerValue& self, Int<int> value, std::size_t bytes, const pyb::object& stream,
               bool /*blocking*/) {
  core::UseGuard uses;
  const StreamHandle on = begin_use(uses, self, bytes, stream, "MemoryPointer.memset()");
  if (bytes == 0) return;
  const OnDevice here(self.device(), "MemoryPointer.memset()");
  check_call(core::driver().memset_d8_async(self.ptr(), static_cast<unsigned char>(value.value), bytes,
                                            cuda::detail::as_stream(on)),
             "cuMemsetD8Async", "MemoryPointer.memset()");
}

// ---- page-locked memory

std::unique_ptr<PinnedValue> allocate_pinned(Int<std::size_t> size) {
  const std::size_t bytes = size;
  const DLDevice device{kDLCUDA, chosen_device("alloc_pinned_memory()")};
  Storage* storage = nullptr;
  // 0: no stream uses it; one that does is the caller's to wait for, as for any buffer given to an asynchronous copy.
  throw_if_bad(core::allocate_storage(core::default_pinned_pool(), device, std::max<std::size_t>(bytes, 1), 0, storage),
               "alloc_pinned_memory()");
  return std::make_unique<PinnedValue>(storage);
}

void bind_memory(pyb::module_& m) {
  pyb::class_<MemoryValue>(m, "BaseMemory")
      .def_property_readonly("ptr", &MemoryValue::ptr, "int: the address of the first byte.")
      .def_property_readonly("size", &MemoryValue::size, "int: bytes.")
      .def_property_readonly("device_id", &MemoryValue::device)
      .def_property_readonly(
          "device",
          [](const MemoryValue& v) { return pyb::module_::import("dlbridge.nd.cuda").attr("Device")(v.device()); })
      .def("__int__", &MemoryValue::ptr)
      .def(
          "__eq__",
          [](const MemoryValue& v, const pyb::object& other) {
            return pyb::isinstance<MemoryValue>(other) && other.cast<const MemoryValue&>().storage == v.storage;
          },
          pyb::is_operator())
      .def("__hash__", [](const MemoryValue& v) { return std::hash<const void*>{}(v.storage); });
  pyb::class_<UnownedValue, MemoryValue>(
      m, "UnownedMemory",
      "Memory that someone else owns.\n\nowner: an object that keeps it alive. device_id: "
      "-1 asks the driver.")
      .def(pyb::init(&unowned), pyb::arg("ptr"), pyb::arg("size"), pyb::arg("owner"), pyb::arg("device_id") = -1);
  pyb::class_<DirectValue, MemoryValue>(m, "Memory", "New device memory, not from the pool.")
      .def(pyb::init([](Int<std::size_t> size) {
             return std::make_unique<DirectValue>(allocate(&core::uncached_pool(), size, "Memory()"));
           }),
           pyb::arg("size"));
  pyb::class_<ManagedValue, MemoryValue>(m, "ManagedMemory", "New memory that host and devices share.")
      .def(pyb::init([](Int<std::size_t> size) {
             return std::make_unique<ManagedValue>(allocate(&managed_pool(), size, "ManagedMemory()"));
           }),
           pyb::arg("size"));
  pyb::class_<PinnedValue, MemoryValue>(m, "PinnedMemory", pyb::buffer_protocol(),
                                        "New page-locked host memory, as a buffer of bytes.")
      .def(pyb::init(&allocate_pinned), pyb::arg("size"))
      .def_property_readonly("mem", [](const pyb::object& self) { return self; })
      .def_buffer([](PinnedValue& v) {
        return pyb::buffer_info(static_cast<unsigned char*>(v.storage->data), static_cast<pyb::ssize_t>(v.size()));
      });
}

// A method that waits, and its twin `name`_async, which takes a stream and does not wait for the host's memory.
template <class What>
void def_twins(pyb::class_<PointerValue>& type, const std::string& name, const char* what,
               void (*act)(const PointerValue&, What, std::size_t, const pyb::object&, bool), const char* doc = "") {
  type.def(
      name.c_str(),
      [act](const PointerValue& p, What other, Int<std::size_t> size) { act(p, other, size, pyb::none(), true); },
      pyb::arg(what), pyb::arg("size"), doc);
  type.def((name + "_async").c_str(),
           [act](const PointerValue& p, What other, Int<std::size_t> size, const pyb::object& stream) {
             act(p, other, size, stream, false);
           },
           pyb::arg(what), pyb::arg("size"), pyb::arg("stream") = pyb::none());
}

void bind_pointer(pyb::module_& m) {
  const auto moved = [](const PointerValue& p, Int<std::ptrdiff_t> bytes) {
    return point_into(p.memory, {p.offset + bytes});
  };
  const auto moved_back = [](const PointerValue& p, Int<std::ptrdiff_t> bytes) {
    return point_into(p.memory, {p.offset - bytes});
  };
  pyb::class_<PointerValue> type(m, "MemoryPointer", "A place in memory, which it keeps alive.");
  type.def(pyb::init(&point_into), pyb::arg("mem"), pyb::arg("offset") = 0)
      .def_readonly("mem", &PointerValue::memory)
      .def_property_readonly("ptr", &PointerValue::ptr, "int: the address.")
      .def_property_readonly("device_id", &PointerValue::device)
      .def_property_readonly("device", [](const PointerValue& p) { return p.memory.attr("device"); })
      .def("__int__", &PointerValue::ptr)
      .def("__add__", moved, pyb::is_operator())
      .def("__radd__", moved, pyb::is_operator())
      .def("__sub__", moved_back, pyb::is_operator())
      .def("__repr__", [](const PointerValue& p) {
        return "<MemoryPointer 0x" + pyb::str("{:x}").format(p.ptr()).cast<std::string>() +
               " device=" + std::to_string(p.device()) + " mem=" + pyb::repr(p.memory).cast<std::string>() + ">";
      });
  def_twins(type, "copy_from", "mem", copy_from, "From a MemoryPointer or a host address.");
  def_twins(type, "copy_from_device", "src", copy_from_device);
  def_twins(type, "copy_from_host", "mem", copy_from_host);
  def_twins(type, "copy_to_host", "mem", copy_to_host);
  def_twins(type, "memset", "value", memset_on);
}

}  // namespace

pyb::object make_pointer(Storage* stolen, std::ptrdiff_t offset) {
  PointerValue out;
  out.memory = pyb::cast(std::make_unique<MemoryValue>(stolen));
  out.offset = offset;
  return pyb::cast(std::move(out));
}

pyb::object allocate_pointer(core::MemoryResource* resource, std::size_t bytes, const char* operation) {
  return make_pointer(allocate(resource, bytes, operation));
}

PyObject* make_memory_pointer(Storage* storage, std::ptrdiff_t offset) {
  return without_pybind([&] {
    core::retain(storage);
    return make_pointer(storage, offset).release().ptr();
  });
}

bool parse_memory_pointer(PyObject* object, Storage*& storage, void*& pointer) {
  return without_pybind([&] {
    const pyb::object given = pyb::reinterpret_borrow<pyb::object>(object);
    if (pyb::isinstance<PointerValue>(given)) {
      const auto& value = given.cast<const PointerValue&>();
      core::retain(storage = value.storage());
      pointer = value.data();
      return true;
    }
    const pyb::object ptr = find_attribute(given, "ptr");
    if (!ptr) return false;
    const std::uintptr_t address = address_of(ptr, "memptr");
    const pyb::object mem = find_attribute(given, "mem"), memory = mem ? mem : given;
    const pyb::object start = find_attribute(memory, "ptr");
    const auto first = start ? address_of(start, "memptr") : address;
    const std::size_t size = memory.attr("size").cast<Int<std::size_t>>();
    if (address < first || address - first > size)
      throw_issue("memptr", ErrorCode::kMalformed, "the pointer is outside of its memory");
    storage = adopt(first, size, given, -1, "memptr");
    pointer = reinterpret_cast<void*>(address);
    return true;
  });
}

void init_memory(pyb::module_& m) {
  bind_memory(m);
  bind_pointer(m);
  m.def(
      "alloc", [](Int<std::size_t> size) { return allocate_pointer(nullptr, size, "alloc()"); }, pyb::arg("size"),
      "Device memory of the current allocator, as a MemoryPointer.");
  m.def(
      "malloc_managed",
      [](Int<std::size_t> size) { return allocate_pointer(&managed_pool(), size, "malloc_managed()"); },
      pyb::arg("size"));
  m.def(
      "malloc_async",
      [](Int<std::size_t> size) { return allocate_pointer(&core::uncached_pool(), size, "malloc_async()"); },
      pyb::arg("size"));
}

}  // namespace dlbridge::py::nd
