// The C ABI as pybind11 extensions use it: the table, references that may be dropped anywhere, and records as tensors.
#pragma once

#include <pybind11/pybind11.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "dlbridge/argument_text.h"
#include "dlbridge/c_api.h"
#include "dlbridge/exception.h"
#include "dlbridge/tensor.h"

#if PYBIND11_VERSION_MAJOR < 3
#error "dlbridge/pybind11.h needs pybind11 3 or newer: another copy stands before it on the include path"
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
                           "imported (" + std::string(cause.what()) + "). Install it: pip install dlbridge");
  }
  if (table->major != c_api::kMajor || table->size < sizeof(c_api::Table))
    throw py::import_error("this extension module was compiled for version " + std::to_string(c_api::kMajor) + "." +
                           std::to_string(c_api::kMinor) + " of dlbridge's C ABI, and the installed dlbridge has " +
                           std::to_string(table->major) + "." + std::to_string(table->minor) +
                           ". Build the module again, or install a dlbridge of its time");
  py::register_local_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const Error& error) {
      api_table->raise(static_cast<std::uint8_t>(error.code()), error.what());
    }
  });
  api_table = table;
}
inline const c_api::Table& api() {
  if (api_table == nullptr) [[unlikely]] fetch_api();
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
  ~Reference() { reset(); }

  void reset() noexcept {
    if (object_ == nullptr) return;
    if (holds_gil()) [[likely]]
      Py_DECREF(object_);
    else
      api_table->release(object_);
    object_ = nullptr;
  }
  // For whoever surely holds the GIL.
  void reset_with_gil() noexcept { Py_CLEAR(object_); }
  PyObject* get() const noexcept { return object_; }

  // An owner with a reference of its own. Any thread, with the GIL or without.
  Owner share() const {
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_XINCREF(object_);
    PyGILState_Release(state);
    return object_ == nullptr ? Owner() : Owner(object_, [](void* object) noexcept {
      api_table->release(static_cast<PyObject*>(object));
    });
  }

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
    throw Error(ErrorCode::kRefused, "the array's dtype, " + dtype_name(dtype) + ", is not one that this extension "
                                     "module was built with. Build it again with the installed dlbridge");
  return *row;
}

inline bool same_dtype(DLDataType a, DLDataType b) noexcept {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

[[gnu::cold]] inline std::string type_name_of(PyObject* object) {
  char name[128];
  api_table->type_name(object, name, sizeof name);
  return name;
}

// The function and the argument that are being loaded, where def() knows them.
struct [[gnu::visibility("hidden")]] Place {
  const ::pybind11::detail::function_record* function = nullptr;
  std::size_t index = 0;

  std::string argument() const {
    if (function == nullptr) return "a";
    const bool named = index < function->args.size() && function->args[index].name != nullptr;
    return named ? function->args[index].name : "arg" + std::to_string(index);
  }
};

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_refusal(Violation v, const Tensor& t, const Requirement& r,
                                                                 PyObject* object, const Place& place) {
  const std::string name = place.argument();
  std::string text;
  if (place.function != nullptr) text = std::string(place.function->name) + "(): argument '" + name + "': ";
  text += refusal_text(v, t, r, name, type_name_of(object));
  throw ::pybind11::type_error(text);
}

// Clears an error that says that the object is no fitting array; others (KeyboardInterrupt, MemoryError) are thrown.
[[gnu::cold, gnu::noinline]] inline void clear_refusal() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0 || PyErr_ExceptionMatches(PyExc_MemoryError) != 0)
    throw ::pybind11::error_already_set();
  PyErr_Clear();
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
