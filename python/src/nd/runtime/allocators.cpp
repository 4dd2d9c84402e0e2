// Allocators written in Python, and which allocator arrays take their memory from.
#include <atomic>
#include <cstring>
#include <string>

#include "ndarray/runtime/async_pool.h"
#include "ndarray/runtime/caching_pool.h"
#include "ndarray/runtime/lifetime.h"
#include "protocols/common/threads.h"
#include "python/src/nd/runtime/deferred.h"
#include "python/src/nd/runtime/objects.h"
#include "python/src/nd/runtime/runtime.h"

namespace dlbridge::py::nd {

namespace {

// What Python's functions are called with.
enum class Signature : std::uint8_t {
  kPointer,       // f(size) -> MemoryPointer, freed when that object goes
  kNumber,        // malloc(size, device) -> int; free(ptr, device)
  kStreamNumber,  // malloc(size, device, stream) -> int; free(ptr, device)
};

// Memory of Python functions. Whoever sets it holds one count, each piece of memory another. A function may raise: the
// allocation fails with its words. Freeing takes the GIL only where the thread has it (deferred.h).
class PythonResource final : public core::MemoryResource {
 public:
  PythonResource(Signature signature, PyObject* allocate, PyObject* free) noexcept
      : signature_(signature), allocate_(allocate), free_(free) {
    Py_INCREF(allocate_);
    Py_XINCREF(free_);
  }

  Status allocate(core::Storage& storage) override {
    if (!interpreter_alive())
      return {ErrorCode::kOutOfMemory, "the interpreter, which would allocate, is shutting down"};
    const core::UseBreak uses;
    const GilHold gil;
    ErrorGuard pending;
    run_deferred();
    if (!retain()) {  // replaced and gone while this thread waited for the GIL
      storage.resource = &core::current_resource(storage.device);
      return storage.resource->allocate(storage);
    }
    auto block = std::make_unique<Block>(Block{nullptr, storage.stream});
    Status status = call(storage, *block);
    if (status.ok()) storage.block = block.release();
    else drop();
    return status;
  }

  void release(core::Storage& storage) noexcept override {
    const std::unique_ptr<Block> block(static_cast<Block*>(storage.block));
    if (!core::is_running()) return;  // the owner of the memory is going, too
    order_before_free(*block, storage);
    if (signature_ != Signature::kPointer)
      return call_to_free({free_, reinterpret_cast<std::uintptr_t>(storage.data), storage.device.device_id,
                           [](void* self) noexcept { static_cast<PythonResource*>(self)->drop(); }, this});
    drop_reference(block->keep);
    drop();
  }

  // False where nobody holds it any more.
  bool retain() noexcept {
    int count = count_.load(std::memory_order_relaxed);
    while (count > 0 && !count_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) {
    }
    return count > 0;
  }
  void drop() noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    drop_reference(allocate_);
    drop_reference(free_);
    if (!is_shared_) delete this;
  }
  // Every thread may find it from now on, also one that has no GIL and will ask for it only when it is replaced: some
  // bytes of it stay forever.
  void share() noexcept { is_shared_ = true; }

 private:
  struct Block {
    PyObject* keep;       // kPointer: the object that the memory goes with
    StreamHandle stream;  // what the memory was allocated for: the order in which its owner reuses it
  };

  ~PythonResource() override = default;

  Status call(core::Storage& storage, Block& block) {
    const Ref size(PyLong_FromSize_t(storage.bytes));
    const Ref device(PyLong_FromLong(storage.device.device_id));
    const StreamHandle on = storage.stream;
    const Ref stream(PyLong_FromSize_t(on == kLegacyStream ? 0 : on));
    if (!size || !device || !stream) return failed();
    PyObject* arguments[] = {size.get(), device.get(), stream.get()};
    const std::size_t count = signature_ == Signature::kPointer ? 1 : signature_ == Signature::kNumber ? 2 : 3;
    Ref result(PyObject_Vectorcall(allocate_, arguments, count, nullptr));
    if (!result) return failed();
    Ref number;
    if (signature_ != Signature::kPointer) {
      number = Ref(PyNumber_Index(result.get()));
    } else if (const Ref ptr(PyObject_GetAttrString(result.get(), "ptr")); ptr) {
      number = Ref(PyNumber_Index(ptr.get()));
    }
    if (!number) return failed();
    storage.data = PyLong_AsVoidPtr(number.get());
    if (storage.data == nullptr) {
      if (PyErr_Occurred() != nullptr) return failed();
      return {ErrorCode::kOutOfMemory, "the allocator gave a null pointer for " + std::to_string(storage.bytes) +
                                           " bytes on cuda:" + std::to_string(storage.device.device_id) +
                                           ". Free arrays first"};
    }
    if (Status status = check_memory(storage, result.get()); !status.ok()) {
      if (signature_ != Signature::kPointer && retain())
        call_to_free({free_, reinterpret_cast<std::uintptr_t>(storage.data), storage.device.device_id,
                      [](void* self) noexcept { static_cast<PythonResource*>(self)->drop(); }, this});
      return status;
    }
    if (signature_ == Signature::kPointer) block.keep = result.release();
    return {};
  }

  // False, too, for a pointer that does not say how large its memory is; and with a Python error set, the user's.
  static bool knows_its_memory(PyObject* result, core::Storage*& memory, void*& pointer) noexcept {
    const int known = guarded([&] { return parse_memory_pointer(result, memory, pointer) ? 1 : 0; });  // -1: an error
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_AttributeError) != 0) PyErr_Clear();
    return known == 1;
  }

  // What can be known of the memory: that the driver has its first and its last byte, on which device and of what kind,
  // and how large the memory behind a MemoryPointer is.
  Status check_memory(core::Storage& storage, PyObject* result) const {
    const auto* first = static_cast<const char*>(storage.data);
    std::size_t room = storage.bytes;
    core::Storage* memory = nullptr;
    void* pointer = nullptr;
    if (signature_ == Signature::kPointer && knows_its_memory(result, memory, pointer)) {
      room = memory->bytes - static_cast<std::size_t>(static_cast<char*>(pointer) - static_cast<char*>(memory->data));
      core::release(memory);
    }
    if (PyErr_Occurred() != nullptr) return failed();
    DLDevice begin{}, end{};
    if (room < storage.bytes || !cuda::device_of_pointer(first, begin).ok() ||
        !cuda::device_of_pointer(first + storage.bytes - 1, end).ok() || begin.device_type != end.device_type ||
        (begin.device_type == kDLCUDA &&
         (begin.device_id != storage.device.device_id || end.device_id != begin.device_id)))
      return {ErrorCode::kCuda,
              "the allocator " + type_name(allocate_) + " gave memory that is not " + std::to_string(storage.bytes) +
                  " bytes on cuda:" + std::to_string(storage.device.device_id) + ". Fix the allocator"};
    storage.device.device_type = begin.device_type;
    return {};
  }

  // The pending exception as a failure of the allocation.
  Status failed() const {
    const auto* type = reinterpret_cast<const PyTypeObject*>(PyErr_Occurred());
    const bool is_memory = PyErr_ExceptionMatches(PyExc_MemoryError) != 0 ||
                           std::strstr(type->tp_name, "OutOfMemoryError") != nullptr;  // PyTorch's is a RuntimeError
    return {is_memory ? ErrorCode::kOutOfMemory : ErrorCode::kCuda,
            "the allocator " + type_name(allocate_) + " raised " + take_error_text()};
  }

  // The owner of the memory may reuse it at once in the order of the stream it was asked for.
  static void order_before_free(const Block& block, const core::Storage& storage) noexcept {
    const StreamHandle last = storage.stream == kPerThreadStream ? kLegacyStream : storage.stream;
    const StreamHandle home = block.stream == kPerThreadStream || block.stream == 0 ? kLegacyStream : block.stream;
    if (last == 0 || last == home || core::capture_of(last)) return;
    try {
      static_cast<void>(cuda::order(home, Ordering::on_stream(last), storage.device.device_id));
    } catch (...) {  // no memory for the words of an error
    }
  }

  const Signature signature_;
  PyObject* const allocate_;
  PyObject* const free_;
  std::atomic<int> count_{1};
  std::atomic<bool> is_shared_{false};
};

struct PythonAllocatorValue : ResourceValue {
  PythonAllocatorValue() = default;
  PythonAllocatorValue(const PythonAllocatorValue&) = delete;
  PythonAllocatorValue& operator=(const PythonAllocatorValue&) = delete;
  ~PythonAllocatorValue() {
    if (resource != nullptr) static_cast<PythonResource*>(resource)->drop();
  }
};
struct FunctionPair : PythonAllocatorValue {};

template <class Value>
std::unique_ptr<Value> make(Signature signature, const pyb::object& allocate, const pyb::object& free) {
  if (PyCallable_Check(allocate.ptr()) == 0 || (!free.is_none() && PyCallable_Check(free.ptr()) == 0))
    throw_issue("PythonFunctionAllocator()", ErrorCode::kWrongType, "the functions are not callable");
  auto out = std::make_unique<Value>();
  out->resource = new PythonResource(signature, allocate.ptr(), free.is_none() ? nullptr : free.ptr());
  return out;
}

// What set_allocator() may be given, as an object with a resource: None, a pool or its malloc, any f(size).
pyb::object resolve(const pyb::object& allocator) {
  if (allocator.is_none()) {
    ResourceValue uncached;
    uncached.resource = &core::uncached_pool();
    return pyb::cast(uncached);
  }
  if (pyb::isinstance<ResourceValue>(allocator)) return allocator;
  const pyb::object self = find_attribute(allocator, "__self__"), name = find_attribute(allocator, "__name__");
  if (self && name && pyb::isinstance<ResourceValue>(self) && name.equal(pyb::str("malloc"))) return self;
  return pyb::cast(make<PythonAllocatorValue>(Signature::kPointer, allocator, pyb::none()));
}

// Holds what is set: (what the user gave, what it resolved to). Guarded by `installing`; forever.
constinit Mutex installing;
pyb::object& installed() {
  static auto* slot = new pyb::object(pyb::none());
  return *slot;
}

// The default for null. What was set before goes when the lock is free again: its end may run Python code.
void install(core::MemoryResource* resource, pyb::object holder) {
  const MutexHold hold(installing);
  for (int device = 0; device < cuda::kMaxDevices; ++device) core::set_resource({kDLCUDA, device}, resource);
  std::swap(installed(), holder);
}

void set_allocator(const pyb::object& allocator) {
  const pyb::object resolved = resolve(allocator);
  core::MemoryResource* resource = resolved.cast<const ResourceValue&>().resource;
  if (auto* python = dynamic_cast<PythonResource*>(resource)) python->share();
  install(resource, pyb::make_tuple(allocator, resolved));
}

void reset_allocator() { install(nullptr, pyb::none()); }

// For the calling thread; None: what all threads have. Whoever sets it keeps the allocator until it is reset.
void set_thread_allocator(const pyb::object& resolved) {
  core::MemoryResource* resource = resolved.is_none() ? nullptr : resolved.cast<const ResourceValue&>().resource;
  for (int device = 0; device < cuda::kMaxDevices; ++device)
    static_cast<void>(core::set_thread_resource({kDLCUDA, device}, resource));
}

}  // namespace

void init_allocators(pyb::module_& m) {
  pyb::class_<PythonAllocatorValue, ResourceValue>(m, "_PythonAllocator");
  pyb::class_<FunctionPair, PythonAllocatorValue>(
      m, "PythonFunctionAllocator",
      "Memory of two functions: malloc(size, device_id) -> int, free(ptr, device_id).\n\n"
      "with_stream: malloc also gets the stream that will use the memory first, 0 for the legacy one, and may order "
      "its reuse by it. An exception in malloc fails the allocation; one in free is reported as unraisable.")
      .def(pyb::init([](const pyb::object& malloc, const pyb::object& free, bool with_stream) {
             return make<FunctionPair>(with_stream ? Signature::kStreamNumber : Signature::kNumber, malloc, free);
           }),
           pyb::arg("malloc_func"), pyb::arg("free_func"), pyb::kw_only(), pyb::arg("with_stream") = false)
      .def(
          "malloc",
          [](const FunctionPair& f, Int<std::size_t> size) {
            return allocate_pointer(f.resource, size, "PythonFunctionAllocator.malloc()");
          },
          pyb::arg("size"));
  m.def("resolve_allocator", &resolve);
  m.def("set_allocator", &set_allocator, pyb::arg("allocator") = pyb::none(),
        "Where every thread's arrays take device memory from: a pool or its malloc, a function f(size) that returns a\n"
        "MemoryPointer, or None: the driver itself, without a pool.");
  m.def("reset_allocator", &reset_allocator, "The default pool again.");
  m.def("installed_allocator", [] {
    const MutexHold hold(installing);
    return installed();
  });
  m.def("set_thread_allocator", &set_thread_allocator);
}

}  // namespace dlbridge::py::nd
