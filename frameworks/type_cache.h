// What was found out about a type, remembered while the type stays as it is. All functions need the GIL.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocols/common/python.h"

namespace dlbridge::frameworks {

// Direct-mapped: a collision costs one classification. Made once a process, never destroyed.
template <class Found, std::size_t kSlots>
class TypeCache {
 public:
  // A copy: any code that runs Python, be it by an allocation that starts the garbage collector, may replace what is
  // remembered. What `classify` throws passes through, and nothing is remembered.
  template <class Classify>
  Found get(PyTypeObject* type, Classify classify) {
    Entry& entry = entries_[slot_of(type)];
    if (entry.type == type && is_current(entry)) [[likely]]
      return entry.found;
    return find_out(type, entry, classify);
  }

 private:
  struct Entry {
    PyTypeObject* type = nullptr;  // a strong reference: the address stays the type's own
    unsigned version = 0;          // tp_version_tag when it was classified
    Found found{};
  };

  template <class Classify>
  [[gnu::noinline, gnu::cold]] static Found find_out(PyTypeObject* type, Entry& entry, Classify classify) {
    const Found found = classify(type);  // may come here again for another type of this slot: stored when it is done
    PyTypeObject* old = entry.type;
    Py_INCREF(type);
    entry = {type, type->tp_version_tag, found};
    Py_XDECREF(old);  // last: it may run Python code, which may come here again
    return found;
  }

  static std::size_t slot_of(PyTypeObject* type) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(type);
    return ((address >> 4) ^ (address >> 11)) % kSlots;
  }

  // A type that can change in Python gives its version tag up when it does. 0: it has none, ask again next time.
  static bool is_current(const Entry& entry) noexcept {
    if (PyType_HasFeature(entry.type, Py_TPFLAGS_IMMUTABLETYPE)) return true;
#if PY_VERSION_HEX < 0x030D0000
    if (!PyType_HasFeature(entry.type, Py_TPFLAGS_VALID_VERSION_TAG)) return false;
#endif
    return entry.version != 0 && entry.type->tp_version_tag == entry.version;
  }

  Entry entries_[kSlots];
};

// Whether the type or a base has the attribute. Runs no code of a metaclass.
inline bool type_has(PyTypeObject* type, PyObject* name) noexcept { return _PyType_Lookup(type, name) != nullptr; }

}  // namespace dlbridge::frameworks
