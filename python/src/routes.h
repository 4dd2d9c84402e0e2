// How the objects of a type are read: found out once a type, remembered while the type stays as it is.
#pragma once

#include "protocols/dlpack/dlpack.h"

namespace dlbridge::py {

enum class Route : std::uint8_t {
  kGeneric,         // looks at the object itself, protocol by protocol
  kTensor,          // dlbridge's own
  kNumpy,           // numpy.ndarray, or a subclass of it
  kTorch,           // torch.Tensor exactly
  kTorchSubclass,   // DLPack or nothing: the other protocols drop what its refusals are about (conj, requires_grad)
  kCupy,            // cupy.ndarray exactly
  kExchange,        // a DLPack C exchange table of the type's own
  kCapsule,
  kBuffer,          // a built-in whose only protocol is the buffer
};

struct TypeEntry {
  PyTypeObject* type = nullptr;  // a strong reference: the address stays the type's own
  unsigned version = 0;          // tp_version_tag when it was classified
  Route route = Route::kGeneric;
  const DLPackExchangeAPI* api = nullptr;
};

// The entry for a type. Never fails: what cannot be found out is kGeneric.
const TypeEntry& route_of(PyTypeObject* type) noexcept;

}  // namespace dlbridge::py
