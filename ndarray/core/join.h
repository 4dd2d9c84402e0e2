// Several arrays as one, and one several times.
#pragma once

#include <optional>
#include <span>

#include "ndarray/core/elementwise.h"

namespace dlbridge::nd {

struct JoinOptions {
  const Tensor* out = nullptr;  // written in place of a new array
  std::optional<DType> dtype;   // of the new array, instead of what the parts' promote to
  Casting casting = Casting::kSameKind;
};

// The parts, of which there is one at least, one after the other along an axis that they have; they are equal along the
// others. `result` is left empty where options.out is given.
Status concatenate(std::span<const Tensor* const> parts, int axis, const JoinOptions& options, Tensor& result);
// The parts, of one shape, along an axis that they do not have: `axis` is its place in the result.
Status stack(std::span<const Tensor* const> parts, int axis, const JoinOptions& options, Tensor& result);

// Each part along an axis, `times` times.
Status repeat(const Tensor& x, int axis, std::int64_t times, Tensor& out);
// On the host: part i of an axis counts[i] times, for each i; `counts` is an int64 vector as long as the axis.
Status repeat_by(const Tensor& x, int axis, const Tensor& counts, Tensor& out);

}  // namespace dlbridge::nd
