// PyCapsules of Arrow's structs: their names, taking them over, making them.
#pragma once

#include <memory>

#include "dlbridge/arrow_abi.h"
#include "protocols/common/errors.h"
#include "protocols/common/read.h"

namespace dlbridge::arrow_c {

template <class Struct>
inline constexpr const char* kCapsuleName = nullptr;
template <>
inline constexpr const char* kCapsuleName<ArrowSchema> = "arrow_schema";
template <>
inline constexpr const char* kCapsuleName<ArrowArray> = "arrow_array";
template <>
inline constexpr const char* kCapsuleName<ArrowDeviceArray> = "arrow_device_array";
template <>
inline constexpr const char* kCapsuleName<ArrowArrayStream> = "arrow_array_stream";
template <>
inline constexpr const char* kCapsuleName<ArrowDeviceArrayStream> = "arrow_device_array_stream";

// Moves the struct out; from then on the capsule's destructor finds it released. False with the call refused.
template <class Struct>
bool take_capsule(PyObject* capsule, const char* method, py::ReadCall& call, Owned<Struct>& out) {
  if (!PyCapsule_IsValid(capsule, kCapsuleName<Struct>)) {
    call.refuse(ErrorCode::kWrongType, std::string(method) + "() gave " + py::type_name(capsule) +
                                           " where the specification asks for a PyCapsule named '" +
                                           kCapsuleName<Struct> + "'. This must be fixed in the producer");
    return false;
  }
  auto* source = static_cast<Struct*>(PyCapsule_GetPointer(capsule, kCapsuleName<Struct>));
  if (base_of(*source).release == nullptr) {
    call.refuse(malformed(std::string("the '") + kCapsuleName<Struct> + "' of " + method +
                          "() is released already; each is good for one import. Ask the producer for a new one"));
    return false;
  }
  out = Owned<Struct>(*source);
  return true;
}

template <class Struct>
void destroy_capsule(PyObject* capsule) {
  const py::ErrorGuard guard;
  delete static_cast<Owned<Struct>*>(PyCapsule_GetContext(capsule));
}

// The struct lies at the beginning of its owner. Throws std::bad_alloc; null with a Python error set.
template <class Struct>
PyObject* make_capsule(Owned<Struct>&& value) {
  auto kept = std::make_unique<Owned<Struct>>(std::move(value));
  py::Ref capsule(PyCapsule_New(&kept->value, kCapsuleName<Struct>, destroy_capsule<Struct>));
  if (!capsule) return nullptr;
  if (PyCapsule_SetContext(capsule.get(), kept.get()) != 0) return nullptr;
  kept.release();
  return capsule.release();
}

}  // namespace dlbridge::arrow_c
