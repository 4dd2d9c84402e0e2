// dlbridge._core._c_api: the readers of protocols/ for the arguments and results of other extension modules.
#include "dlbridge/c_api.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "dlbridge/cuda_order.h"
#include "dlbridge/dlpack_codec.h"
#include "frameworks/numpy.h"
#include "protocols/common/record_tensor.h"
#include "protocols/common/streams.h"
#include "python/src/bridge.h"
#include "python/src/kit/tables.h"

namespace dlbridge::py {

namespace {

void copy_text(const std::string& text, char* out, std::size_t capacity) noexcept {
  if (capacity == 0) return;
  const std::size_t n = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

// --- read -----------------------------------------------------------------------------------------------------------

// The extension knows which of its functions and arguments it reads for, and says so itself.
constexpr char kUnnamed[] = "";

int read(PyObject* object, c_api::Record* out, std::int64_t* dims, std::int32_t capacity) noexcept {
  return guarded([&] {
    if (Py_TYPE(object) == frameworks::numpy_array_type) [[likely]] {
      RecordTensor borrowed(*out, dims, capacity);
      if (frameworks::borrow_numpy(object, borrowed)) [[likely]] {
        out->ready_kind = static_cast<std::uint8_t>(Ordering::Kind::kReady);
        out->protocol = static_cast<std::uint8_t>(Protocol::kArrayInterface);
        Py_INCREF(object);
        out->holder = object;
        return 0;
      }
    }
    auto* self = as_tensor(settled(as_tensor(read_any(object, kUnnamed)), "dlbridge::Tensor from Python"));
    if (self == nullptr) return -1;
    const Tensor& tensor = self->tensor;
    out->dl = tensor.dl;
    out->flags = tensor.flags;
    out->size = tensor.size;
    out->ready_kind = static_cast<std::uint8_t>(tensor.ready.kind);
    out->ready_handle = tensor.ready.handle;
    out->protocol = static_cast<std::uint8_t>(self->protocol);
    out->holder = as_object(self);
    return 0;
  });
}

// What can only be read as a copy is copied: numbers of the opposite byte order, and misaligned ones.
Ref read_or_copy(PyObject* object) {
  if (Ref tensor(read_any(object, kUnnamed)); tensor) return tensor;
  checked(!PyCapsule_CheckExact(object) && PyErr_ExceptionMatches(PyExc_BufferError) != 0);
  PyErr_Clear();
  static PythonFunction copied("dlbridge._may_convert", "copied");
  return copied(object);
}

PyObject* adapt(PyObject* object, const c_api::Wanted* wanted) noexcept {
  return guarded([&] {
    static PythonFunction adapt("dlbridge._may_convert", "adapt");
    const Ref tensor = read_or_copy(object);
    const DTypeInfo* dtype = wanted->dtype.bits != 0 ? find_dtype(wanted->dtype) : nullptr;
    const DeviceTypeInfo* device = wanted->device_type != 0 ? find_device_type(wanted->device_type) : nullptr;
    const std::string dtype_text(dtype != nullptr ? dtype->name : "");
    const std::string device_text(device != nullptr ? device->name : "");
    return PyObject_CallFunction(adapt.get(), "OzzC", tensor.get(), dtype != nullptr ? dtype_text.c_str() : nullptr,
                                 device != nullptr ? device_text.c_str() : nullptr, wanted->order);
  });
}

// --- results --------------------------------------------------------------------------------------------------------

constexpr char kToPython[] = "dlbridge::Tensor to Python";

PyObject* wrap(DLManagedTensorVersioned* managed, std::uint8_t ready_kind, std::uintptr_t ready_handle) noexcept {
  return guarded([&] {
    Tensor tensor;
    throw_if_bad(import_managed(managed, tensor), kToPython);
    tensor.ready = Ordering{static_cast<Ordering::Kind>(ready_kind), ready_handle};
    return settled(wrap_tensor(std::move(tensor), Protocol::kDLPack, nullptr), kToPython);
  });
}

PyObject* convert_to(PyObject* tensor, const char* name) noexcept {
  const Ref to(PyUnicode_InternFromString(name));
  if (!to) return nullptr;
  PyObject* const arguments[] = {tensor, to.get()};
  return convert(nullptr, arguments, 2, nullptr);
}

void release(PyObject* object) noexcept { drop_anywhere(object); }

// --- streams --------------------------------------------------------------------------------------------------------

int parse_stream_argument(PyObject* argument, std::intptr_t* out) noexcept {
  return guarded([&] {
    StreamArgument stream;
    checked(parse_stream(argument, "stream", stream, StreamUse::kWork));
    if (stream.kind == StreamArgument::Kind::kHandle) throw_if_bad(check_stream(stream.handle), "stream");
    *out = stream.kind == StreamArgument::Kind::kNone ? 0 : static_cast<std::intptr_t>(stream.handle);
    return 0;
  });
}

int order(DLDevice device, std::uint8_t ready_kind, std::uintptr_t ready_handle, std::uintptr_t stream, char* message,
          std::size_t capacity) noexcept {
  try {
    const Ordering ready{static_cast<Ordering::Kind>(ready_kind), ready_handle};
    const Status status = cuda::order(stream == 0 ? kLegacyStream : stream, ready, device.device_id);
    if (status.ok()) return 0;
    copy_text(status.message(), message, capacity);
  } catch (...) {
    copy_text("out of memory", message, capacity);
  }
  return -1;
}

std::uintptr_t current_stream(std::int32_t device_id) noexcept { return cuda::current_stream(device_id); }

// --- errors ---------------------------------------------------------------------------------------------------------

void raise_code(std::uint8_t code, const char* message) noexcept {
  const auto known = std::min(code, static_cast<std::uint8_t>(ErrorCode::kCuda));
  PyErr_SetString(class_for(static_cast<ErrorCode>(known)), message);
}

void write_type_name(PyObject* object, char* out, std::size_t capacity) noexcept {
  try {
    copy_text(type_name(object), out, capacity);
  } catch (...) {
    copy_text("object", out, capacity);
  }
}

constexpr c_api::Table kTable{
    sizeof(c_api::Table), c_api::kMajor, c_api::kMinor,         0,     read,           adapt,      wrap,
    convert_to,           release,       parse_stream_argument, order, current_stream, raise_code, write_type_name,
    convert_like,
};

}  // namespace

void init_c_api(PyObject* module) {
  // The capsule keeps the name's address; the table is read-only, whatever a capsule's pointer says.
  const Ref capsule = owned(PyCapsule_New(const_cast<c_api::Table*>(&kTable), c_api::kCapsuleName, nullptr));
  checked(PyModule_AddObjectRef(module, "_c_api", capsule.get()));
}

}  // namespace dlbridge::py
