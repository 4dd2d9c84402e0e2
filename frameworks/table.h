// The one table of frameworks, and what it says of a type: found out once, remembered while the type stays as it is.
#pragma once

#include <string_view>

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// All of them, in the order in which they are listed to users.
std::span<const Framework* const> frameworks() noexcept;

// By convert()'s name, another name, or the first part of a module's: "torch.nn" is PyTorch. Null where there is none.
const Framework* find_framework(std::string_view name) noexcept;

// Kinds that belong to no framework.
extern const ArrayKind kOwnTensor;  // dlbridge's own: taken as it is
extern const ArrayKind kGeneric;    // the object itself is looked at, protocol by protocol
extern const ArrayKind kOpaque;     // the same; the type has no protocol, though the object may

struct TypeFacts {
  const ArrayKind* kind = &kGeneric;  // never null
  const DLPackExchangeAPI* api = nullptr;
};

// A copy, in two registers: any code that runs Python, be it by an allocation that starts the garbage collector, may
// replace what is remembered. Never fails: what cannot be found out is kGeneric.
TypeFacts facts_of(PyTypeObject* type) noexcept;

// The framework that the type's objects belong to: whose arrays they are, or where the type or a base comes from. Null:
// one of dlbridge's own Tensors, or nothing that the table knows. Runs no code of the type's.
const Framework* framework_of(PyTypeObject* type) noexcept;

}  // namespace dlbridge::frameworks
