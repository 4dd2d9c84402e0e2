// What every file that speaks to CPython needs: an owned reference, interned names, the state of the interpreter.
// All functions here need the GIL unless they say otherwise.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

#include "dlbridge/thread_exit.h"

namespace dlbridge::py {

// Runs a call that may run Python code or wait for the GIL, from a frame that must not be unwound.
using dlbridge::detail::outlive_thread_exit;

[[gnu::noinline]] inline void drop_protected(PyObject* object) noexcept {
  outlive_thread_exit([object] { Py_DECREF(object); });
}

// Null is allowed. Only what gives the last reference up runs code, and so needs that frame.
[[gnu::always_inline]] inline void drop(PyObject* object) noexcept {
  if (object == nullptr) return;
#ifndef Py_GIL_DISABLED  // there no count says that nobody lets go meanwhile
  if (Py_REFCNT(object) > 1) [[likely]] {
    Py_DECREF(object);
    return;
  }
#endif
  drop_protected(object);
}

// Of an object that had other references a moment ago: without the GIL another thread may have let go of them since.
[[gnu::always_inline]] inline void drop_shared(PyObject* object) noexcept {
#ifdef Py_GIL_DISABLED
  drop_protected(object);
#else
  Py_DECREF(object);
#endif
}

// Owns one reference. Null is allowed and means "a Python error is set" where a function returns it.
class Ref {
 public:
  Ref() noexcept = default;
  explicit Ref(PyObject* stolen) noexcept : object_(stolen) {}
  static Ref borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    if (this != &other) {
      PyObject* old = std::exchange(object_, std::exchange(other.object_, nullptr));
      drop(old);
    }
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { drop(object_); }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Interned strings, small constants and prebuilt keyword tuples, made once at module initialisation.
struct Names {
  PyObject* dlpack;                 // "__dlpack__"
  PyObject* dlpack_device;          // "__dlpack_device__"
  PyObject* dlpack_c_exchange_api;  // "__dlpack_c_exchange_api__"
  PyObject* array_interface;        // "__array_interface__"
  PyObject* array_struct;           // "__array_struct__"
  PyObject* cuda_array_interface;   // "__cuda_array_interface__"
  PyObject* arrow_c_array;          // "__arrow_c_array__"
  PyObject* arrow_c_stream;         // "__arrow_c_stream__"
  PyObject* arrow_c_device_array;   // "__arrow_c_device_array__"
  PyObject* arrow_c_device_stream;  // "__arrow_c_device_stream__"
  PyObject* cuda_stream;            // "__cuda_stream__"
  PyObject *shape, *typestr, *data, *strides, *version, *stream, *mask, *descr, *offset;
  PyObject *max_version, *dl_device, *copy, *protocol, *device, *to, *nulls;
  PyObject *requires_grad, *is_conj, *is_neg;
  PyObject* max_version_value;              // (1, 3)
  PyObject* kw_max_version;                 // ("max_version",)
  PyObject* kw_stream;                      // ("stream",)
  PyObject* kw_stream_max_version;          // ("stream", "max_version")
  PyObject* kw_max_version_dl_device_copy;  // ("max_version", "dl_device", "copy")
  PyObject* host_device;                    // (1, 0): __dlpack_device__ of ordinary memory
  PyObject* empty_tuple;
};
extern Names names;
bool init_names();  // false with a Python error set

// False once the interpreter is going or gone: then no reference may be touched and no deleter of a Python object's
// may run; what is left is the process's to free. Callable from any thread, without the GIL.
inline bool interpreter_alive() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

// Null where the object has no such attribute, and then no Python error is set; or where reading it failed.
inline Ref optional_attribute(PyObject* object, PyObject* name) noexcept {
  return Ref(outlive_thread_exit([=] {
    PyObject* value = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject_GetOptionalAttr(object, name, &value);
#else
    _PyObject_LookupAttr(object, name, &value);
#endif
    return value;
  }));
}

// An item of a dictionary that other threads may change. Null where there is none, or with a Python error set.
inline Ref dict_item(PyObject* dict, PyObject* key) noexcept {
#ifdef Py_GIL_DISABLED
  PyObject* item = nullptr;
  PyDict_GetItemRef(dict, key, &item);
  return Ref(item);
#else
  return Ref::borrow(PyDict_GetItemWithError(dict, key));
#endif
}
// The same by the text of a key; no Python error is set.
inline Ref dict_item(PyObject* dict, const char* key) noexcept {
#ifdef Py_GIL_DISABLED
  PyObject* item = nullptr;
  if (PyDict_GetItemStringRef(dict, key, &item) < 0) PyErr_Clear();
  return Ref(item);
#else
  return Ref::borrow(PyDict_GetItemString(dict, key));
#endif
}

// A module that somebody has imported; nothing is imported here. Null, with no Python error set, where there is none:
// also where sys.modules has None (which blocks an import), or something else than a module.
inline Ref loaded_module(const char* name) noexcept {
  Ref module = dict_item(PyImport_GetModuleDict(), name);
  return module && PyModule_Check(module.get()) ? std::move(module) : Ref();
}

// A global of such a module, by its dictionary: no __getattr__ of a module's runs.
inline Ref loaded_global(const char* module_name, const char* name) noexcept {
  const Ref module = loaded_module(module_name);
  return module ? dict_item(PyModule_GetDict(module.get()), name) : Ref();
}

// The pending exception as an object, with its traceback, and clears it. Null where there is none.
inline Ref take_exception() noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  return Ref(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) return {};
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_DECREF(type);
  Py_XDECREF(traceback);
  return Ref(value);
#endif
}

// Makes `exception` the pending one again; null clears.
inline void set_exception(Ref exception) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* value = exception.release();
  if (value == nullptr) return PyErr_Clear();
  PyErr_Restore(Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value))).release(), value,
                PyException_GetTraceback(value));
#endif
}

// Releases the GIL for its scope.
class GilRelease {
 public:
  GilRelease() noexcept : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease() {
    outlive_thread_exit([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

// Holds the GIL for its scope, on any thread, which may have it. Only while interpreter_alive().
class GilHold {
 public:
  GilHold() noexcept : state_(outlive_thread_exit(PyGILState_Ensure)) {}
  GilHold(const GilHold&) = delete;
  GilHold& operator=(const GilHold&) = delete;
  ~GilHold() {
    outlive_thread_exit([this] { PyGILState_Release(state_); });
  }

 private:
  PyGILState_STATE state_;
};

// Holds a pending exception aside while foreign code (a deleter, a release function) runs.
class ErrorGuard {
 public:
  ErrorGuard() noexcept {
    if (PyErr_Occurred() != nullptr) [[unlikely]]
      pending_ = take_exception();
  }
  ErrorGuard(const ErrorGuard&) = delete;
  ErrorGuard& operator=(const ErrorGuard&) = delete;
  ~ErrorGuard() {
    if (pending_) [[unlikely]]
      set_exception(std::move(pending_));
  }

 private:
  Ref pending_;
};

// Drops a reference on any thread, with the GIL or without, perhaps with an exception pending, perhaps after the
// interpreter: then the process frees what is left.
inline void drop_anywhere(PyObject* object) noexcept {
  if (!interpreter_alive()) return;
  const GilHold gil;
  const ErrorGuard guard;
  drop(object);
}

}  // namespace dlbridge::py
