// What the spellings of dtypes mean that only Python's half can read, once it has read them.
#pragma once

#include <optional>

#include "dlbridge/dtype.h"
#include "protocols/common/threads.h"

namespace dlbridge::py {

// Other spellings than the names that Python's half has resolved: texts, Python's types and NumPy's, which mean the
// same forever. Of classes that go away none is remembered.
class Spellings {
 public:
  static bool can_have(PyObject* object) noexcept {
    if (PyUnicode_CheckExact(object)) return true;
    return PyType_Check(object) && (reinterpret_cast<PyTypeObject*>(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
  }
  // With a Python error set or without one nothing is found.
  std::optional<DType> find(PyObject* spelling) noexcept {
    PyObject* const all = dict();
    const Ref found(all == nullptr ? nullptr : dict_item(all, spelling).release());
    if (!found) return std::nullopt;
    return static_cast<DType>(PyLong_AsLong(found.get()));
  }
  // Nothing is lost where there is no memory for it.
  void remember(PyObject* spelling, DType dtype) noexcept {
    PyObject* const all = dict();
    const Ref number(PyLong_FromLong(static_cast<long>(dtype)));
    if (all == nullptr || !number || PyDict_SetItem(all, spelling, number.get()) < 0) PyErr_Clear();
  }

 private:
  PyObject* dict() noexcept {
    return find_once(dict_, [] { return PyDict_New(); });
  }
  Atomic<PyObject*> dict_;
};

}  // namespace dlbridge::py
