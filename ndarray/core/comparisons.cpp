#include "ndarray/core/comparisons.h"

#include <algorithm>

namespace dlbridge::nd {

namespace {

bool is_logical(Op op) noexcept { return op == Op::kLogicalAnd || op == Op::kLogicalOr || op == Op::kLogicalXor; }

bool is_64_bits(const Input& input) noexcept {
  return dtype_of_operand(input) == DType::kInt64 || dtype_of_operand(input) == DType::kUInt64;
}

// int64 with uint64: they promote to float64, which holds all the values of neither.
bool differ_in_sign(const Input& a, const Input& b) noexcept {
  return is_64_bits(a) && is_64_bits(b) && dtype_of_operand(a) != dtype_of_operand(b) && !is_weak(a) && !is_weak(b);
}

// Where one of two operands is an int that the integers of the other cannot equal: its position, else -1.
int find_outlier(std::span<const Input> inputs) noexcept {
  for (int k = 0; k < 2; ++k) {
    const Input& input = inputs[static_cast<std::size_t>(k)];
    const Input& other = inputs[static_cast<std::size_t>(1 - k)];
    if (is_weak(input) && !is_weak(other) && !fits(input.scalar, promote(dtype_of_operand(other), input.scalar.kind)))
      return k;
  }
  return -1;
}

// What a comparison with an int out of bounds says of every element: nothing is computed.
bool compare_with_outlier(Op op, const Scalar& outlier, bool is_left) noexcept {
  if (op == Op::kEqual || op == Op::kNotEqual) return op == Op::kNotEqual;
  const bool above = outlier.huge ? outlier.re > 0 : outlier.above_int64 || outlier.i > 0;
  return above != is_left;  // less, less_equal
}

Status elementwise_with_outlier(Op op, std::span<const Input> inputs, int position, const ElementwiseOptions& options,
                                Tensor& result) {
  Input operands[2] = {inputs[0], inputs[1]};
  Input& outlier = operands[position];
  if (is_logical(op)) {
    outlier.scalar = Scalar::of_bool(true);  // it is not 0
    return elementwise(op, operands, options, result);
  }
  const bool answer = compare_with_outlier(op, outlier.scalar, position == 0);
  return elementwise(answer ? Op::kIsFinite : Op::kIsNan, {&operands[1 - position], 1}, options, result);  // integers
}

// A NumPy scalar among the two is a number like any other. Arrays: where the signed one is negative the answer is
// known, elsewhere its bytes are those of a uint64.
Status compare_signs(Op op, std::span<const Input> inputs, const ElementwiseOptions& options, Tensor& result) {
  Input operands[2] = {inputs[0], inputs[1]};
  for (Input& operand : operands)
    if (operand.array == nullptr) {
      operand.scalar.strong = false;
      return elementwise(op, operands, options, result);
    }
  const int position = dtype_of(*operands[0].array) == DType::kInt64 ? 0 : 1;
  const Tensor& is_signed = *operands[position].array;
  Tensor negative, bytes, answer;
  const Input with_zero[2] = {{&is_signed, {}}, {nullptr, Scalar::of_int(0)}};
  DLBRIDGE_TRY(elementwise(Op::kLess, with_zero, {}, negative));
  DLBRIDGE_TRY(make_view(is_signed, shape_of(is_signed), {is_signed.dl.strides, shape_of(is_signed).size()}, 0, bytes));
  bytes.set_dtype(dlbridge::info(DType::kUInt64));
  operands[position].array = &bytes;
  DLBRIDGE_TRY(elementwise(op, operands, {}, answer));
  const bool holds = op == Op::kNotEqual || (op != Op::kEqual && position == 0);  // for a negative number
  const Input bools[2] = {{&negative, {}}, {&answer, {}}};
  return elementwise(holds ? Op::kLogicalOr : Op::kLess, bools, options, result);  // less: the answer, if not negative
}

}  // namespace

Status compare_beyond_loops(Op op, std::span<const Input> inputs, const ElementwiseOptions& options, Tensor& result,
                            bool& done) {
  if (const int k = find_outlier(inputs); k >= 0) [[unlikely]] {
    done = true;
    return elementwise_with_outlier(op, inputs, k, options, result);
  }
  if (is_logical(op) || !differ_in_sign(inputs[0], inputs[1])) [[likely]]
    return {};
  done = true;
  return compare_signs(op, inputs, options, result);
}

}  // namespace dlbridge::nd
