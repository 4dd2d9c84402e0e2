// The C ABI as pybind11 extensions use it: the table, references that may be dropped anywhere, and records as tensors.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "dlbridge/argument_text.h"
#include "dlbridge/c_api.h"
#include "dlbridge/dlpack_codec.h"
#include "dlbridge/exception.h"
#include "dlbridge/pybind11/place.h"
#include "dlbridge/tensor.h"

#if PYBIND11_VERSION_MAJOR < 3
#error "dlbridge/pybind11.h needs pybind11 3 or newer: an older copy comes first on the include path"
#endif

namespace dlbridge {

namespace detail {

// --- the table ------------------------------------------------------------------------------------------------------

// Hidden: each extension module checks the version for itself. Written once under the GIL.
[[gnu::visibility("hidden")]] inline const c_api::Table* api_table = nullptr;

[[gnu::cold, gnu::noinline]] inline void fetch_api() {
  namespace py = ::pybind11;
  auto* table = static_cast<const c_api::Table*>(PyCapsule_Import(c_api::kCapsuleName, 0));
  if (table == nullptr) {
    const py::error_already_set cause;
    throw py::import_error("this extension module takes arrays through the package dlbridge, which cannot be "
                           "imported (" +
                           std::string(cause.what()) + "). Install it: pip install dlbridge");
  }
  if (table->major != c_api::kMajor || table->size < sizeof(c_api::Table))
    throw py::import_error("this extension module was compiled for version " + std::to_string(c_api::kMajor) + "." +
                           std::to_string(c_api::kMinor) + " of dlbridge's C ABI, and the installed dlbridge has " +
                           std::to_string(table->major) + "." + std::to_string(table->minor) +
                           ". Build the module again, or install a matching dlbridge");
  py::register_local_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const Error& error) {
      api_table->raise(static_cast<std::uint8_t>(error.code()), error.what_for_caller().c_str());
    }
  });
  api_table = table;
}
inline const c_api::Table& api() {
  if (api_table == nullptr) [[unlikely]]
    fetch_api();
  return *api_table;
}

// --- references -----------------------------------------------------------------------------------------------------

inline bool holds_gil() noexcept { return Py_IsInitialized() != 0 && PyGILState_Check() != 0; }

// One reference to a Python object that may be dropped anywhere: on another thread, under gil_scoped_release, after
// the interpreter. Null is allowed.
class Reference {
 public:
  Reference() noexcept = default;
  explicit Reference(PyObject* stolen) noexcept : object_(stolen) {}
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    if (this != &other) {
      reset();
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  ~Reference() {
    if (object_ != nullptr) reset();
  }

  void reset() noexcept {
    Reference none;
    reset(*this, none);
  }
  // Both at once, for one question after the GIL.
  static void reset(Reference& a, Reference& b) noexcept {
    PyObject* const first = std::exchange(a.object_, nullptr);
    PyObject* const second = std::exchange(b.object_, nullptr);
    if (first == nullptr && second == nullptr) return;
    if (holds_gil()) [[likely]] {
      detail::outlive_thread_exit([&] {
        Py_XDECREF(first);
        Py_XDECREF(second);
      });
    } else {
      if (first != nullptr) api_table->release(first);
      if (second != nullptr) api_table->release(second);
    }
  }
  // For whoever surely holds the GIL.
  void reset_with_gil() noexcept { Py_CLEAR(object_); }
  PyObject* get() const noexcept { return object_; }

  // A reference of its own to any object, or to none. Any thread, with the GIL or without.
  static Reference to(PyObject* object) {
    if (object == nullptr) return {};
    const PyGILState_STATE state = detail::outlive_thread_exit(PyGILState_Ensure);
    Py_INCREF(object);
    PyGILState_Release(state);
    return Reference(object);
  }
  // The same as an owner.
  static Owner share(PyObject* object) {
    if (object == nullptr) return {};
    Reference kept = to(object);
    return Owner(std::exchange(kept.object_, nullptr),
                 [](void* kept) noexcept { api_table->release(static_cast<PyObject*>(kept)); });
  }
  Owner share() const { return share(object_); }

 private:
  PyObject* object_ = nullptr;
};

// --- records --------------------------------------------------------------------------------------------------------

// The record as a descriptor that owns nothing; its extents and strides stay where they are. `row` is its dtype's.
inline void point_at_record(Tensor& t, const c_api::Record& record, const DTypeInfo& row) noexcept {
  t.dl = record.dl;
  t.set_dtype(row);
  t.flags = record.flags;
  t.size = record.size;
  t.ready = {static_cast<Ordering::Kind>(record.ready_kind), record.ready_handle};
}

inline const DTypeInfo& known_dtype(DLDataType dtype) {
  const DTypeInfo* row = find_dtype(dtype);
  if (row == nullptr) [[unlikely]]
    throw Error(ErrorCode::kRefused, "the array's dtype, " + dtype_name(dtype) +
                                         ", is not one that this extension "
                                         "module was built with. Build it again with the installed dlbridge");
  return *row;
}

// A tensor of the record, with extents and strides of its own, that owns nothing.
[[gnu::cold]] inline Tensor tensor_of(const c_api::Record& record) {
  Tensor seen;
  point_at_record(seen, record, known_dtype(record.dl.dtype));
  return alias_of(seen);
}

[[gnu::cold]] inline std::string type_name_of(PyObject* object) {
  char name[128];
  api_table->type_name(object, name, sizeof name);
  return name;
}

// Why an array does not fit, without the name of the function.
[[gnu::cold, gnu::noinline]] inline std::string reason_of(Violation v, const Tensor& t, const Requirement& r,
                                                          PyObject* object, const Place& place) {
  return refusal_text(v, t, r, place.argument(), type_name_of(object));
}

// The pending error, and what it says where the readers or the producer's own C code have raised it. What Python code
// of the producer's raises is its own affair (it has a traceback), as is what is no plain message.
class [[gnu::visibility("hidden")]] Unreadable {
 public:
  enum class From : std::uint8_t { kReader, kConversion };  // the latter is Python code of the package's
  [[gnu::cold]] explicit Unreadable(From from = From::kReader) : error_(::pybind11::error_already_set()) {
    const ::pybind11::object arguments = error_.value().attr("args");
    if (from == From::kReader && error_.trace()) return;
    if (!PyTuple_CheckExact(arguments.ptr()) || PyTuple_GET_SIZE(arguments.ptr()) != 1) return;
    PyObject* text = PyTuple_GET_ITEM(arguments.ptr(), 0);
    const char* message = PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8(text) : nullptr;
    if (message == nullptr) {
      PyErr_Clear();
      return;
    }
    reason_ = message;
    for (const std::string_view operation : {"asdlpack(): ", "stream: "})
      if (reason_.starts_with(operation)) reason_.erase(0, operation.size());
  }
  // Another overload may be asked, as the object is no fitting array; KeyboardInterrupt, MemoryError and the like end
  // the call.
  bool is_refusal() const { return error_.matches(PyExc_Exception) && !error_.matches(PyExc_MemoryError); }
  std::string text() const { return reason_.empty() ? error_.what() : reason_; }

  [[noreturn, gnu::cold]] void raise(const Place& place, const Requirement* r = nullptr) {
    if (!is_refusal() || reason_.empty()) throw std::move(error_);
    throw_if_others_refused(place, reason_);
    std::string text = place.prefix() + reason_;
    if (r != nullptr && r->writable && error_.matches(PyExc_BufferError))
      text += ". The function writes to it: what it writes to a copy has to be copied back";
    error_.value().attr("args") = ::pybind11::make_tuple(text);
    throw std::move(error_);
  }

 private:
  ::pybind11::error_already_set error_;
  std::string reason_;
};

// What a DLPack capsule holds, without taking it; false where it is spent or nothing that can be read.
[[gnu::cold, gnu::noinline]] inline bool peek_capsule(PyObject* capsule, Tensor& out) {
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    const auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    return decode_dltensor(managed->dl_tensor, 0, out).ok();
  }
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return false;
  const auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  return managed->version.major == kDLPackVersion.major &&
         decode_dltensor(managed->dl_tensor, managed->flags, out).ok();
}

constexpr bool conversion_may_help(Violation v) noexcept {
  return v == Violation::kDType || v == Violation::kDevice || copy_repairs(v);
}
[[gnu::cold]] inline c_api::Wanted wanted_of(const Requirement& r) noexcept {
  c_api::Wanted wanted{{0, 0, 0}, 0, 'A'};
  for (const DTypeInfo& d : kDTypes)
    if (r.dtypes == dtypes(d.id)) wanted.dtype = to_dl(d.id);
  if (r.devices != kAnyDevice)
    wanted.device_type = (r.devices & kOnHost) != 0 ? kDLCPU : (r.devices & kOnCuda) != 0 ? kDLCUDA : 0;
  if (r.strides != stride_rule::any) wanted.order = r.strides == stride_rule::f_contig ? 'F' : 'C';
  return wanted;
}

}  // namespace detail

// Imports dlbridge now rather than at the first call, and turns dlbridge::Error into the exceptions of the package.
// Call it in PYBIND11_MODULE.
inline void connect() { detail::api(); }

}  // namespace dlbridge
