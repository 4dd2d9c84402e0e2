// Elementwise calls: promotion, broadcasting, the output, overlap, and the launch.
#pragma once

#include <span>
#include <string_view>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"

namespace dlbridge::nd {

// An operand: an array, or a scalar where `array` is null.
struct Input {
  const Tensor* array = nullptr;
  Scalar scalar;
};
// Of a Python scalar, which has no dtype of its own (NEP 50).
inline bool is_weak(const Input& input) noexcept { return input.array == nullptr && !input.scalar.strong; }
inline DType dtype_of_operand(const Input& input) noexcept {
  return input.array != nullptr ? dtype_of(*input.array) : input.scalar.dtype;
}

// NumPy's rules for casts: https://numpy.org/doc/stable/reference/generated/numpy.can_cast.html
enum class Casting : std::uint8_t { kNo, kEquiv, kSafe, kSameKind, kUnsafe };
bool can_cast(DType from, DType to, Casting casting) noexcept;
// Of an operand: a Python scalar can be cast to any dtype that has its kind, whatever the width.
bool can_cast(const Input& from, DType to, Casting casting) noexcept;
std::string_view name_of(Casting casting) noexcept;

struct ElementwiseOptions {
  const Tensor* out = nullptr;   // written in place of a new array; its dtype must take the result
  const DType* dtype = nullptr;  // compute in this dtype instead of the promoted one; of a comparison: bool
  const char* name = nullptr;    // of the operation, for messages; null: the op's own
  Casting casting =
      Casting::kSameKind;  // what may be cast: operands to the dtype of the computation, its result to out
};

// At least one operand is an array, or options.out is set. All arrays are on one device. `result` is left empty where
// options.out is given. The result is laid out as the inputs are.
Status elementwise(Op op, std::span<const Input> inputs, const ElementwiseOptions& options, Tensor& result);

// out[...] = source, with broadcasting, any cast and overlap; one device. Leading axes of extent 1 that `out` lacks
// are dropped, as NumPy does in assignments.
Status assign(const Tensor& out, const Input& source, const char* name);

// An operation's finished result goes to the `out` that was given for it: one of its shape, whose dtype takes it
// (same_kind).
Status store(const Tensor& result, const Tensor& out, const char* name);

// A dense copy with a cast.
Status copy_as(const Tensor& source, DType dtype, CopyOrder order, Tensor& out);

// x itself, or for bools (of which every byte that is not 0 is true) a copy of 0 and 1, for kernels that compare bytes.
Status comparable(const Tensor& x, Tensor& copy, const Tensor*& out);

// The dtype that operands promote to (NEP 50).
DType result_type(std::span<const Input> inputs) noexcept;

}  // namespace dlbridge::nd
