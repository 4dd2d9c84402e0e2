// A framework as dlbridge knows it: one row of the table in table.cpp, made in the framework's own file.
#pragma once

#include <span>

#include "dlbridge/caps.h"
#include "dlbridge/dlpack.h"
#include "protocols/common/read.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::frameworks {

// One kind of its arrays: how they are recognised and read. Everything but `recognises` may be left out.
struct ArrayKind {
  // `api`: the C exchange table that the type has of its own; null: none. Runs no code of the type's.
  bool (*recognises)(PyTypeObject* type, const DLPackExchangeAPI* api) noexcept;
  // The short way. kAbsent, with no Python error set: the array is unusual, the readers of protocols/ are asked.
  py::Read (*read)(PyObject* array, const DLPackExchangeAPI* api, py::ReadCall& call, py::TensorObject* self) = nullptr;
  // Refuses what the framework's own exporters drop in silence, on all ways but the short one. False: it did, or a
  // Python error is set.
  bool (*check)(PyObject* array, py::ReadCall& call) = nullptr;
  // Says on which stream the data is ready that a reader of protocols/ has read, where the protocols do not. False with
  // a Python error set, or the call refused.
  bool (*order)(PyObject* array, py::ReadCall& call, py::TensorObject* self) = nullptr;
  bool immutable = false;      // nobody may write to such an array, whatever its protocols say
  bool only_dlpack = false;    // the other protocols lose what `check` is about
  bool foreign_bools = false;  // a bool may be another byte than 0 and 1
  bool only_alone = false;     // an array where a call names it; in a container it is a value among others
};

inline constexpr DTypeSet kIntegers = dtypes(DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
                                             DType::kUInt16, DType::kUInt32, DType::kUInt64);
inline constexpr DTypeSet kFloats = dtypes(DType::kFloat16, DType::kFloat32, DType::kFloat64);
inline constexpr DTypeSet kBoolAndNumbers = dtypes(DType::kBool) | kIntegers | kFloats;
inline constexpr DTypeSet kNumpyDTypes = kBoolAndNumbers | dtypes(DType::kComplex64, DType::kComplex128);
inline constexpr DTypeSet kBFloat16 = dtypes(DType::kBFloat16);
inline constexpr DTypeSet kFloat8 =
    dtypes(DType::kFloat8E3M4, DType::kFloat8E4M3, DType::kFloat8E4M3B11FNUZ, DType::kFloat8E4M3FN,
           DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ, DType::kFloat8E8M0FNU);

// Pinned memory is the host's and managed memory a GPU's, whether or not a consumer knows a name for them.
constexpr Requirement in_any_memory(Requirement needs) noexcept {
  if ((needs.devices & kOnCpu) != 0) needs.devices |= kOnHost;
  if ((needs.devices & devices(kDLCUDA)) != 0) needs.devices |= kOnCuda;
  return needs;
}

// One kind of tensor that it takes; a framework with several array types has several.
struct Consumer {
  caps takes;                  // with no copy; `devices`: those that it knows by name
  const char* enter;           // the function of dlbridge/_convert.py that gives it one, where `give` does not
  bool immutable = false;      // its arrays are never written to, with no mark that says so
  const char* copies = "";     // why it makes a copy of its own whatever it gets; empty: it does not
  DTypeSet copied_dtypes = 0;  // of which it makes a copy of its own even so
  const char* note = "";       // the remedy for a dtype or a device that it does not take
  Requirement needs = in_any_memory(requirement_of(takes));

  bool knows(DLDevice device) const noexcept {
    return (takes.devices >> static_cast<unsigned>(device.device_type) & 1) != 0;
  }
  bool copies_itself(const Tensor& t) const noexcept {
    return *copies != '\0' || (copied_dtypes >> static_cast<unsigned>(t.dtype().id) & 1) != 0;
  }
};

struct Framework {
  const char* name;    // as convert() knows it
  const char* module;  // what is imported
  std::span<const char* const> aliases = {};
  std::span<const ArrayKind> arrays = {};
  std::span<const Consumer> consumers = {};
  // The C way in. Null, with no Python error set: there is none for this tensor here, `enter` knows one. New reference.
  PyObject* (*give)(py::TensorObject* tensor, const char* operation) = nullptr;
  // True: plan() would say that the tensor is shared by the first row, which knows its device. Only with `give`;
  // takes_as_is below.
  bool (*shares)(const Tensor& tensor) noexcept = nullptr;
};

// With the row as a constant, so that only what it asks for is compiled in.
template <const auto& kConsumers>
bool takes_as_is(const Tensor& tensor) noexcept {
  constexpr const Consumer& kFirst = kConsumers[0];
  static constexpr Requirement kNeeds = requirement_of(kFirst.takes);
  return find_violation(tensor, kNeeds) == Violation::kNone && !kFirst.copies_itself(tensor);
}

}  // namespace dlbridge::frameworks
