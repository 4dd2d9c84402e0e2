// The C ABI as extensions in C++ use it: the table, references that may be dropped anywhere, and records as tensors.
// Knows CPython, by its limited API where that is asked for, and no binding library.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "dlbridge/argument_text.h"
#include "dlbridge/c_api.h"
#include "dlbridge/dlpack_codec.h"
#include "dlbridge/exception.h"
#include "dlbridge/tensor.h"
#include "dlbridge/thread_exit.h"

namespace dlbridge {

namespace detail {

// --- errors ---------------------------------------------------------------------------------------------------------

// The Python error that was set, taken away.
class [[gnu::visibility("hidden")]] PythonError {
 public:
  PythonError() noexcept {
#if PY_VERSION_HEX >= 0x030C0000 && (!defined(Py_LIMITED_API) || Py_LIMITED_API >= 0x030C0000)
    value_ = PyErr_GetRaisedException();
#else
    PyObject *type = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value_, &trace);
    PyErr_NormalizeException(&type, &value_, &trace);
    if (trace != nullptr && value_ != nullptr) PyException_SetTraceback(value_, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
#endif
  }
  PythonError(const PythonError&) = delete;
  PythonError& operator=(const PythonError&) = delete;
  ~PythonError() { Py_XDECREF(value_); }

  bool matches(PyObject* type) const noexcept { return PyErr_GivenExceptionMatches(value_, type) != 0; }
  PyObject* value() const noexcept { return value_; }
  bool has_trace() const noexcept {
    PyObject* trace = PyException_GetTraceback(value_);
    Py_XDECREF(trace);
    return trace != nullptr;
  }
  std::string message() const { return taken_text(PyObject_Str(value_)); }
  // "ValueError: what it says"
  std::string text() const {
    return taken_text(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value_)), "__name__")) + ": " +
           message();
  }
  // Sets it again.
  void restore() noexcept {
    PyObject* value = std::exchange(value_, nullptr);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
    Py_DECREF(value);
  }

  static std::string utf8(PyObject* text) {
    Py_ssize_t size = 0;
    const char* bytes = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
    return bytes != nullptr ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
  }

 private:
  static std::string taken_text(PyObject* text) {
    std::string out = utf8(text);
    Py_XDECREF(text);
    PyErr_Clear();
    return out;
  }

  PyObject* value_ = nullptr;
};

// --- the table ------------------------------------------------------------------------------------------------------

// Hidden: each extension module checks the version for itself. Written once under the GIL.
[[gnu::visibility("hidden")]] inline const c_api::Table* api_table = nullptr;

// The table, imported by the first call; null with a Python error set.
[[gnu::cold, gnu::noinline]] inline const c_api::Table* fetch_api() noexcept {
  if (api_table != nullptr) return api_table;
  const auto* table = static_cast<const c_api::Table*>(PyCapsule_Import(c_api::kCapsuleName, 0));
  if (table == nullptr) {
    PyErr_Format(PyExc_ImportError,
                 "this extension module takes arrays through the package dlbridge, which cannot be imported (%s). "
                 "Install it: pip install dlbridge",
                 PythonError().text().c_str());
    return nullptr;
  }
  if (table->major != c_api::kMajor || table->size < sizeof(c_api::Table)) {
    PyErr_Format(PyExc_ImportError,
                 "this extension module was compiled for version %u.%u of dlbridge's C ABI, and the installed dlbridge "
                 "has %u.%u. Build the module again, or install a matching dlbridge",
                 static_cast<unsigned>(c_api::kMajor), static_cast<unsigned>(c_api::kMinor),
                 static_cast<unsigned>(table->major), static_cast<unsigned>(table->minor));
    return nullptr;
  }
  return api_table = table;
}
// For calls that may be the first ones, and are no function that Python has called.
inline const c_api::Table& api() {
  if (api_table == nullptr && fetch_api() == nullptr) [[unlikely]] {
    const PythonError cause;
    throw Error(ErrorCode::kRefused, cause.message());
  }
  return *api_table;
}

// --- references -----------------------------------------------------------------------------------------------------

// False where it may: the limited API has no way to ask.
inline bool holds_gil() noexcept {
#if defined(Py_LIMITED_API)
  return false;
#else
  return Py_IsInitialized() != 0 && PyGILState_Check() != 0;
#endif
}

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

// The pending error, and what it says where the readers or the producer's own C code have raised it. What Python code
// of the producer's raises is its own affair (it has a traceback), as is what is no plain message.
class [[gnu::visibility("hidden")]] Unreadable {
 public:
  enum class From : std::uint8_t { kReader, kConversion };  // the latter is Python code of the package's
  [[gnu::cold, gnu::noinline]] explicit Unreadable(From from = From::kReader) {
    if (from == From::kReader && error_.has_trace()) return;
    PyObject* arguments = PyObject_GetAttrString(error_.value(), "args");
    PyObject* first = arguments != nullptr && PyTuple_CheckExact(arguments) && PyTuple_Size(arguments) == 1
                          ? PyTuple_GetItem(arguments, 0)
                          : nullptr;
    if (first != nullptr && PyUnicode_CheckExact(first)) reason_ = PythonError::utf8(first);
    Py_XDECREF(arguments);
    PyErr_Clear();
    for (const std::string_view operation : {"asdlpack(): ", "stream: "})
      if (reason_.starts_with(operation)) reason_.erase(0, operation.size());
  }
  // Another overload may be asked, as the object is no fitting array; KeyboardInterrupt, MemoryError and the like end
  // the call.
  bool is_refusal() const { return error_.matches(PyExc_Exception) && !error_.matches(PyExc_MemoryError); }
  std::string text() const { return reason_.empty() ? error_.text() : reason_; }

  template <class Place>
  [[noreturn, gnu::cold]] void raise(const Place& place, const Requirement* r = nullptr) {
    if (is_refusal() && !reason_.empty()) {
      place.throw_if_others_refused(reason_);
      std::string text = place.prefix() + reason_;
      if (r != nullptr && r->writable && error_.matches(PyExc_BufferError))
        text += ". The function writes to it: what it writes to a copy has to be copied back";
      put(text);
    }
    error_.restore();
    Place::throw_pending();
  }

 private:
  [[gnu::noinline]] void put(const std::string& text) noexcept {
    PyObject* arguments = Py_BuildValue("(s)", text.c_str());
    if (arguments == nullptr || PyObject_SetAttrString(error_.value(), "args", arguments) != 0) PyErr_Clear();
    Py_XDECREF(arguments);
  }

  PythonError error_;
  std::string reason_;
};

[[gnu::cold, gnu::noinline]] inline void set_type_error(const std::string& text) noexcept {
  PyErr_SetString(PyExc_TypeError, text.c_str());
}

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

}  // namespace dlbridge
