// Elementwise calls: promotion, broadcasting, the output, overlap, and the launch.
#pragma once

#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"

namespace dlbridge::nd {

// An operand: an array, or a scalar where `array` is null.
struct Input {
  const Tensor* array = nullptr;
  Scalar scalar;
};

struct ElementwiseOptions {
  const Tensor* out = nullptr;      // written in place of a new array; its dtype must take the result (same_kind)
  const DType* dtype = nullptr;     // compute in this dtype instead of the promoted one
  const char* name = nullptr;       // of the operation, for messages; null: the op's own
};

// At least one operand is an array, or options.out is set. All arrays are on one device. `result` is left empty where
// options.out is given. The result is laid out as the inputs are.
Status elementwise(Op op, std::span<const Input> inputs, const ElementwiseOptions& options, Tensor& result);

// out[...] = source, with broadcasting, any cast and overlap; one device.
Status assign(const Tensor& out, const Input& source, const char* name);

// A dense copy with a cast, in C, F or (null axes) the source's own order.
enum class CopyOrder : std::uint8_t { kC, kF, kKeep };
Status copy_as(const Tensor& source, DType dtype, CopyOrder order, Tensor& out);

// The dtype that operands promote to (NEP 50).
DType result_type(std::span<const Input> inputs) noexcept;

// NumPy's 'same_kind'.
bool can_cast_same_kind(DType from, DType to) noexcept;
bool can_cast_safely(DType from, DType to) noexcept;

}  // namespace dlbridge::nd
