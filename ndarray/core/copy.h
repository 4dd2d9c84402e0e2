// Copies of arrays from device to device, from one into another, and of one element.
#pragma once

#include "ndarray/core/elementwise.h"

namespace dlbridge::nd {

// A copy of `source` on `device` (on its own device, too), dense. To the host: waits; else ordered on streams.
// The caller holds the lock that guards the tensors; it is released while the host copies or waits.
Status copy_to(const Tensor& source, DLDevice device, Tensor& out);

// Copies `source` straight into `target`, an array of the same shape on another device, where their elements lie alike:
// the same dtype, dense, in the same order. `copied` says whether they do; nothing is done where they do not.
Status copy_alike(const Tensor& source, const Tensor& target, bool& copied);

// target[...] = source, with broadcasting, from any device; the cast must be allowed. Of a Python scalar, too.
Status copy_into(const Tensor& target, Input source, Casting casting);

// The element at the array's start; waits for the device.
Status read_element(const Tensor& t, Scalar& out);

}  // namespace dlbridge::nd
