// Arguments of the elementwise kernels as the front end would make them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "ndarray/kernels/functions.h"
#include "tests/cpp/nd/dtypes.h"
#include "tests/cpp/nd/values.h"

namespace dlbridge::nd::testing_cases {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using testing::dtypes_of;
inline std::size_t itemsize(DType t) { return info(t).itemsize; }

inline DType operand_dtype(Op op, DType compute, int operand) {
  if (operand == 0) return result_dtype(info(op).rule, compute);
  return op == Op::kWhere && operand == 1 ? DType::kBool : compute;
}

inline ElementwiseArgs make_args(Op op, DType compute) {
  ElementwiseArgs args{};
  args.op = op;
  args.compute = compute;
  args.operands = static_cast<std::uint8_t>(info(op).operands + 1);
  for (int k = 0; k < args.operands; ++k) args.dtype[k] = operand_dtype(op, compute, k);
  args.size = 1;
  return args;
}

// One element, 0-d.
inline Value eval(Op op, DType compute, std::vector<Value> inputs) {
  ElementwiseArgs args = make_args(op, compute);
  alignas(16) unsigned char memory[kMaxOperands][16] = {};
  for (int k = 0; k < args.operands; ++k) {
    args.data[k] = memory[k];
    if (k > 0) put_value(args.dtype[k], memory[k], inputs[static_cast<std::size_t>(k - 1)]);
  }
  EXPECT_EQ(host_kernels::elementwise(args), 0) << info(op).name << ' ' << info(compute).name;
  return value_at(args.dtype[0], memory[0]);
}

}  // namespace dlbridge::nd::testing_cases
