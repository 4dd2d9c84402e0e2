// Frameworks whose array type has a C exchange table that takes tensors.
#pragma once

#include "frameworks/framework.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::frameworks {

// The table of `module`.`type`, which somebody has imported; null where it has none that takes tensors.
inline const DLPackExchangeAPI* exchange_table_of(const char* module, const char* type_name) noexcept {
  const py::Ref type = py::loaded_global(module, type_name);
  if (!type || !PyType_Check(type.get())) return nullptr;
  const DLPackExchangeAPI* api = dlpack::find_exchange_api(reinterpret_cast<PyTypeObject*>(type.get()));
  return api != nullptr && api->managed_tensor_to_py_object_no_sync != nullptr ? api : nullptr;
}

}  // namespace dlbridge::frameworks
