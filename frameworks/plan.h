// What becomes of a tensor at a framework: requirement.h decides, by the rows of the framework's file.
#pragma once

#include <string>

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

struct Plan {
  enum class Outcome : std::uint8_t {
    kShared,
    kCopied,      // a dense copy of the tensor is taken
    kCopiesSelf,  // the framework makes a copy of its own
    kRefused,
  };
  const Consumer* consumer = nullptr;  // whose way is taken; null where the tensor is refused
  Outcome outcome = Outcome::kRefused;
  Violation violation = Violation::kNone;

  bool is_copy() const noexcept { return outcome == Outcome::kCopied || outcome == Outcome::kCopiesSelf; }
};

Plan plan(const Framework& framework, const Tensor& tensor) noexcept;

// Why the tensor is not taken as it is, and what to do: "expected writable memory, got …". Empty where it is shared.
struct Reasons {
  std::string reason;
  std::string remedy;
};
Reasons explain(const Plan& plan, const Framework& framework, const Tensor& tensor);

}  // namespace dlbridge::frameworks
