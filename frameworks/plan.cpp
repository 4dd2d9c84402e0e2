#include "frameworks/plan.h"

#include <algorithm>

namespace dlbridge::frameworks {

namespace {

struct Mismatch {
  Violation violation;
  Requirement together;     // what those rows take that are as near as any
  const Consumer* nearest;  // the first of them
};

// Why no row fits: none takes the device, or none of those that do the rank, or none of those the dtype.
Mismatch find_mismatch(const Framework& framework, const Tensor& t) noexcept {
  Requirement together;
  together.devices = 0, together.dtypes = 0, together.min_rank = kMaxDims, together.max_rank = 0;
  const Consumer* nearest = &framework.consumers.front();
  Violation violation = Violation::kDevice;
  for (const Consumer& consumer : framework.consumers) {
    const Requirement& needs = consumer.needs;
    together.devices |= consumer.takes.devices;
    if ((needs.devices >> static_cast<unsigned>(t.dl.device.device_type) & 1) == 0) continue;
    if (violation == Violation::kDevice) violation = Violation::kRank, nearest = &consumer;
    together.min_rank = std::min(together.min_rank, needs.min_rank);
    together.max_rank = std::max(together.max_rank, needs.max_rank);
    if (t.dl.ndim < needs.min_rank || t.dl.ndim > needs.max_rank) continue;
    if (violation == Violation::kRank) violation = Violation::kDType, nearest = &consumer;
    together.dtypes |= needs.dtypes;
  }
  return {violation, together, nearest};
}

std::string remedy_of(const Mismatch& mismatch, const Framework& framework) {
  switch (mismatch.violation) {
    case Violation::kDevice:
      if ((mismatch.together.devices & (kOnCpu | devices(kDLCUDA))) == 0) return mismatch.nearest->note;
      return std::string("Move it there: convert(x, '") + framework.name + "', device='" +
             ((mismatch.together.devices & kOnCpu) != 0 ? "cpu" : "cuda") + "')";
    case Violation::kRank: return "Reshape it first";
    default: break;
  }
  const char* note = mismatch.nearest->note;
  return *note != '\0' ? note : "Cast it first, or view it as an unsigned integer of the same width";
}

}  // namespace

Plan plan(const Framework& framework, const Tensor& tensor) noexcept {
  for (const Consumer& consumer : framework.consumers) {
    const Violation violation = find_violation(tensor, consumer.needs);
    if (violation != Violation::kNone && !copy_repairs(violation)) continue;
    if (violation != Violation::kNone) return {&consumer, Plan::Outcome::kCopied, violation};
    return {&consumer, consumer.copies_itself(tensor) ? Plan::Outcome::kCopiesSelf : Plan::Outcome::kShared, violation};
  }
  return {nullptr, Plan::Outcome::kRefused, find_mismatch(framework, tensor).violation};
}

Reasons explain(const Plan& plan, const Framework& framework, const Tensor& tensor) {
  const auto wanted = [&](Violation violation, const Requirement& needs) {
    return "expected " + expected_text(violation, tensor, needs) + ", got " + describe(tensor);
  };
  constexpr const char* kAllowCopy = "Allow a copy: copy=None or copy=True";
  switch (plan.outcome) {
    case Plan::Outcome::kShared: return {};
    case Plan::Outcome::kCopied: return {wanted(plan.violation, plan.consumer->needs), kAllowCopy};
    case Plan::Outcome::kCopiesSelf: {
      const std::string why = plan.consumer->copies;
      return {why.empty() ? "it stores " + std::string(tensor.dtype().name) + " in another form" : why, kAllowCopy};
    }
    case Plan::Outcome::kRefused: break;
  }
  const Mismatch mismatch = find_mismatch(framework, tensor);
  return {wanted(mismatch.violation, mismatch.together), remedy_of(mismatch, framework)};
}

}  // namespace dlbridge::frameworks
