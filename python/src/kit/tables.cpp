#include "python/src/kit/tables.h"

namespace dlbridge::py {

PyTypeObject* add_type(PyObject* module, const char* name, std::size_t bytes, unsigned long flags,
                       std::vector<PyType_Slot> slots, PyObject* base) {
  slots.push_back({0, nullptr});
  PyType_Spec spec{name, static_cast<int>(bytes), 0, static_cast<unsigned>(flags), slots.data()};
  PyObject* type = checked(PyType_FromModuleAndSpec(module, &spec, base));  // immortal
  checked(PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, type));
  return reinterpret_cast<PyTypeObject*>(type);
}

PyObject* PythonFunction::get() {
  return checked(find_once(function_, [this]() -> PyObject* {
    const Ref module(PyImport_ImportModule(module_));
    return module ? PyObject_GetAttrString(module.get(), name_) : nullptr;
  }));
}

}  // namespace dlbridge::py
