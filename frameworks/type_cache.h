// What was found out about a type, remembered while the type stays as it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocols/common/python.h"
#include "protocols/common/threads.h"

namespace dlbridge::frameworks {

// Whether the type or a base has the attribute. Runs no code of a metaclass.
inline bool type_has(PyTypeObject* type, PyObject* name) noexcept { return _PyType_Lookup(type, name) != nullptr; }

// Direct-mapped: a collision costs one classification. Made once a process, never destroyed.
template <class Found, std::size_t kSlots>
class TypeCache {
 public:
  // A copy: any code that runs Python, be it by an allocation that starts the garbage collector, may replace what is
  // remembered. What `classify` throws passes through, and nothing is remembered.
  template <class Classify>
  Found get(PyTypeObject* type, Classify classify) {
    Slot& slot = entries_[slot_of(type)];
    if (Entry entry; slot.read(entry) && entry.type == type && is_current(entry)) [[likely]]
      return entry.found;
    return find_out(type, slot, classify);
  }

 private:
  struct Entry {
    PyTypeObject* type = nullptr;  // a strong reference: the address stays the type's own
    unsigned version = 0;          // tp_version_tag when it was classified
    Found found{};
  };

  using Slot = py::SharedWords<Entry>;

  template <class Classify>
  [[gnu::noinline, gnu::cold]] static Found find_out(PyTypeObject* type, Slot& slot, Classify classify) {
    const unsigned before = version_of(type);
    const Found found = classify(type);  // may come here again for another type of this slot: stored when it is done
    static_cast<void>(type_has(type, py::names.dlpack));  // a type has no version before somebody looks at an attribute
    unsigned version = version_of(type);
    if (py::kFreeThreaded && version != before) version = 0;  // another thread may have changed it: ask again
    Py_INCREF(type);
    Entry old;
    if (!slot.replace({type, version, found}, old)) old.type = type;
    Py_XDECREF(old.type);  // last: it may run Python code, which may come here again
    return found;
  }

  static unsigned version_of(PyTypeObject* type) noexcept {
    return __atomic_load_n(&type->tp_version_tag, __ATOMIC_ACQUIRE);
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
    return entry.version != 0 && version_of(entry.type) == entry.version;
  }

  Slot entries_[kSlots];
};

}  // namespace dlbridge::frameworks
