// The C ABI as extensions in C++ use it: the table, references that may be dropped anywhere, and records as tensors.
// Knows CPython, by its limited API where that is asked for, and no binding library.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "dlbridge/c_api.h"
#include "dlbridge/exception.h"
#include "dlbridge/requirement.h"
#include "dlbridge/tensor.h"
#include "dlbridge/thread_exit.h"

namespace dlbridge {

namespace detail {

// --- errors ---------------------------------------------------------------------------------------------------------

// The Python error that was set, taken away.
class [[gnu::visibility("hidden")]] PythonError {
 public:
  [[gnu::cold, gnu::noinline]] PythonError() noexcept {
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
  [[gnu::cold, gnu::noinline]] std::string message() const { return taken_text(PyObject_Str(value_)); }
  // "ValueError: what it says"
  [[gnu::cold, gnu::noinline]] std::string text() const {
    std::string out = taken_text(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value_)), "__name__"));
    out += ": ";
    return out += message();
  }
  // Sets it again.
  void restore() noexcept {
    PyObject* value = std::exchange(value_, nullptr);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
    Py_DECREF(value);
  }

  [[gnu::cold, gnu::noinline]] static std::string utf8(PyObject* text) {
    Py_ssize_t size = 0;
    const char* bytes = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
    return bytes != nullptr ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
  }

 private:
  [[gnu::cold, gnu::noinline]] static std::string taken_text(PyObject* text) {
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
    if (first != nullptr || second != nullptr) drop(first, second);
  }
  // For whoever surely holds the GIL.
  void reset_with_gil() noexcept { Py_CLEAR(object_); }
  PyObject* get() const noexcept { return object_; }

  // A reference of its own to any object, or to none. Any thread, with the GIL or without.
  static Reference to(PyObject* object) {
    if (object == nullptr) return {};
    if (holds_gil()) [[likely]]
      return Reference(Py_NewRef(object));
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
  [[gnu::noinline]] static void drop(PyObject* first, PyObject* second) noexcept {
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

  PyObject* object_ = nullptr;
};

// --- records --------------------------------------------------------------------------------------------------------

inline Ordering ready_of(const c_api::Record& record) noexcept {
  return {static_cast<Ordering::Kind>(record.ready_kind), record.ready_handle};
}
// The record as a descriptor that owns nothing; its extents and strides stay where they are. `row` is its dtype's.
inline void point_at_record(Tensor& t, const c_api::Record& record, const DTypeInfo& row) noexcept {
  t.dl = record.dl;
  t.set_dtype(row);
  t.flags = record.flags;
  t.size = record.size;
  t.ready = ready_of(record);
}

inline const DTypeInfo& known_dtype(DLDataType dtype) {
  const DTypeInfo* row = find_dtype(dtype);
  if (row == nullptr) [[unlikely]]
    throw Error(ErrorCode::kRefused, "the array's dtype, " + dtype_name(dtype) +
                                         ", is not one that this extension "
                                         "module was built with. Build it again with the installed dlbridge");
  return *row;
}

}  // namespace detail

}  // namespace dlbridge
