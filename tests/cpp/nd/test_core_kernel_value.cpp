// Scalars as the values of kernel parameters: what is taken, and what is narrowed to the compiled kernel's own type.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "ndarray/core/kernel_value.h"

namespace dlbridge::nd {
namespace {

template <class T>
T read(const KernelValue& value) {
  T out;
  std::memcpy(&out, value.bytes, sizeof(T));
  return out;
}

Scalar numpy(Scalar scalar, DType dtype) {
  scalar.strong = true;
  scalar.dtype = dtype;
  return scalar;
}

TEST(KernelValue, PythonNumbersAreNarrowedToTheKernelsParameter) {
  KernelValue value;
  ASSERT_TRUE(value_of(Scalar::of_int(-2), value).ok());
  EXPECT_EQ(value.size, 8u);
  ASSERT_TRUE(narrow(value, 2).ok());
  EXPECT_EQ(read<std::int16_t>(value), -2);
  ASSERT_TRUE(value_of(Scalar::of_float(0.5), value).ok());
  ASSERT_TRUE(narrow(value, 4).ok());
  EXPECT_EQ(read<float>(value), 0.5f);
  EXPECT_EQ(value.size, 4u);
}

TEST(KernelValue, AnIntegerThatDoesNotFitTheParameterIsRefused) {
  KernelValue value;
  for (const std::int64_t number : {std::int64_t{256}, std::int64_t{-129}}) {
    ASSERT_TRUE(value_of(Scalar::of_int(number), value).ok());
    EXPECT_EQ(narrow(value, 1).code(), ErrorCode::kOverflow) << number;
  }
  ASSERT_TRUE(value_of(Scalar::of_int(255), value).ok());  // an unsigned char may take it
  EXPECT_TRUE(narrow(value, 1).ok());
}

TEST(KernelValue, ANumPyScalarKeepsItsWidth) {
  KernelValue value;
  ASSERT_TRUE(value_of(numpy(Scalar::of_float(1.5), DType::kFloat64), value).ok());
  EXPECT_EQ(narrow(value, 4).code(), ErrorCode::kWrongType);
}

TEST(KernelValue, ADeclaredTypeDecides) {
  KernelValue value;
  const DTypeSet floats = kFloatSet;
  ASSERT_TRUE(value_as(Scalar::of_int(3), DType::kFloat32, floats, value).ok());
  EXPECT_EQ(read<float>(value), 3.0f);
  EXPECT_EQ(value.size, 4u);
  EXPECT_EQ(value_as(Scalar::of_complex(1, 2), DType::kFloat32, floats, value).code(), ErrorCode::kWrongType);
  EXPECT_EQ(value_as(Scalar::of_int(300), DType::kUInt8, {}, value).code(), ErrorCode::kOverflow);
  const Status other = value_as(numpy(Scalar::of_float(1), DType::kFloat64), DType::kFloat32, {}, value);
  EXPECT_NE(other.message().find("is a numpy.float64; the source declares float32"), std::string::npos);
}

}  // namespace
}  // namespace dlbridge::nd
