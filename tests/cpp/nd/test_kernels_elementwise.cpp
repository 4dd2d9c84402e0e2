// What the host's elementwise kernels compute, by tables: integers, bool, floats and complex numbers at their edges.
#include <cmath>
#include <string>

#include "tests/cpp/nd/elementwise_cases.h"

namespace dlbridge::nd {
namespace {

using namespace testing_cases;

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

struct Case {
  Op op;
  DType compute;
  std::vector<Value> inputs;
  Value expected;
};

std::string name_of(const Case& c) {
  std::string text = std::string(info(c.op).name) + "<" + std::string(info(c.compute).name) + ">(";
  for (const Value& v : c.inputs) text += std::to_string(v.real()) + "+" + std::to_string(v.imag()) + "j ";
  return text + ")";
}

void check_exactly(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Value got = eval(c.op, c.compute, c.inputs);
    EXPECT_TRUE(same(got.real(), c.expected.real()) && same(got.imag(), c.expected.imag()))
        << name_of(c) << " gave " << got << ", not " << c.expected;
  }
}

TEST(Elementwise, IntegersNeverTrap) {
  constexpr DType i8 = DType::kInt8, u8 = DType::kUInt8, i32 = DType::kInt32, i64 = DType::kInt64, u64 = DType::kUInt64;
  const double min32 = -2147483648.0;
  check_exactly({
      {Op::kFloorDivide, i32, {7, 0}, 0},
      {Op::kRemainder, i32, {7, 0}, 0},
      {Op::kFmod, i32, {7, 0}, 0},
      {Op::kFloorDivide, u8, {7, 0}, 0},
      {Op::kFloorDivide, i32, {min32, -1}, min32},
      {Op::kRemainder, i32, {min32, -1}, 0},
      {Op::kFloorDivide, i8, {-128, -1}, -128},
      {Op::kFmod, i64, {-9223372036854775808.0, -1}, 0},
      {Op::kFloorDivide, i32, {-7, 2}, -4},
      {Op::kFloorDivide, i32, {7, -2}, -4},
      {Op::kRemainder, i32, {-7, 2}, 1},
      {Op::kRemainder, i32, {7, -2}, -1},
      {Op::kFmod, i32, {-7, 2}, -1},
      {Op::kRemainder, i32, {6, -3}, 0},
      {Op::kAdd, i8, {127, 1}, -128},
      {Op::kMultiply, DType::kUInt16, {65535, 65535}, 1},
      {Op::kNegative, u8, {1}, 255},
      {Op::kAbsolute, i8, {-128}, -128},
      {Op::kSquare, i32, {65536}, 0},
      {Op::kReciprocal, i32, {0}, 0},
      {Op::kReciprocal, i32, {-1}, -1},
      {Op::kReciprocal, u64, {2}, 0},
      {Op::kPower, i32, {-3, 3}, -27},
      {Op::kPower, i32, {2, -1}, 0},
      {Op::kPower, i32, {-1, -3}, -1},
      {Op::kPower, i32, {0, 0}, 1},
      {Op::kPower, i8, {2, 8}, 0},
      {Op::kPower, i64, {3, 30}, 205891132094649.0},
      {Op::kLeftShift, i32, {1, 31}, min32},
      {Op::kLeftShift, i32, {1, 32}, 0},
      {Op::kLeftShift, i8, {3, -1}, 0},
      {Op::kRightShift, i32, {-8, 1}, -4},
      {Op::kRightShift, i32, {-8, 40}, -1},
      {Op::kRightShift, u8, {200, 9}, 0},
      {Op::kRightShift, i8, {-8, -1}, -1},
      {Op::kGcd, i32, {-12, 18}, 6},
      {Op::kGcd, i8, {0, -5}, 5},
      {Op::kSign, i8, {-3}, -1},
      {Op::kSign, u8, {9}, 1},
      {Op::kInvert, u8, {1}, 254},
      {Op::kMaximum, i8, {-1, 1}, 1},
      {Op::kMaximum, u8, {255, 1}, 255},
      {Op::kLess, i8, {-1, 1}, 1},
      {Op::kLess, u8, {255, 1}, 0},
      {Op::kIsFinite, i32, {3}, 1},
      {Op::kIsNan, i32, {3}, 0},
      {Op::kSignbit, i8, {-3}, 1},
      {Op::kSignbit, u8, {253}, 0},
      {Op::kClip, i32, {7, 1, 5}, 5},
      {Op::kClip, i32, {7, 9, 5}, 5},
      {Op::kFloor, i32, {7}, 7},
      {Op::kLogicalXor, i32, {7, 9}, 0},
  });
}

TEST(Elementwise, BoolFollowsNumPy) {
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2; ++b) {
      const double x = a, y = b;
      check_exactly({
          {Op::kAdd, DType::kBool, {x, y}, static_cast<double>(a | b)},
          {Op::kMultiply, DType::kBool, {x, y}, static_cast<double>(a & b)},
          {Op::kMaximum, DType::kBool, {x, y}, static_cast<double>(a | b)},
          {Op::kFmin, DType::kBool, {x, y}, static_cast<double>(a & b)},
          {Op::kBitwiseXor, DType::kBool, {x, y}, static_cast<double>(a ^ b)},
          {Op::kEqual, DType::kBool, {x, y}, static_cast<double>(a == b)},
          {Op::kNotEqual, DType::kBool, {x, y}, static_cast<double>(a != b)},
          {Op::kLess, DType::kBool, {x, y}, static_cast<double>(a < b)},
          {Op::kLessEqual, DType::kBool, {x, y}, static_cast<double>(a <= b)},
          {Op::kInvert, DType::kBool, {x}, static_cast<double>(1 - a)},
          {Op::kAbsolute, DType::kBool, {x}, x},
          {Op::kWhere, DType::kBool, {x, y, 1 - y}, a != 0 ? y : 1 - y},
          {Op::kClip, DType::kBool, {x, y, 1}, static_cast<double>(a | b)},
      });
    }
}

TEST(Elementwise, FloatsFollowNumPyAtTheEdges) {
  for (DType t : dtypes_of(kFloatSet))
    check_exactly({
        {Op::kMaximum, t, {kNan, 1}, kNan},
        {Op::kMaximum, t, {1, kNan}, kNan},
        {Op::kMinimum, t, {kInf, kNan}, kNan},
        {Op::kFmax, t, {kNan, 1}, 1},
        {Op::kFmin, t, {1, kNan}, 1},
        {Op::kFmax, t, {kNan, kNan}, kNan},
        {Op::kFloorDivide, t, {-7, 2}, -4},
        {Op::kFloorDivide, t, {7, -2}, -4},
        {Op::kFloorDivide, t, {1, 0}, kInf},
        {Op::kFloorDivide, t, {-0.0, 3}, -0.0},
        {Op::kRemainder, t, {-7, 2}, 1},
        {Op::kRemainder, t, {7, -2}, -1},
        {Op::kRemainder, t, {6, -2}, -0.0},
        {Op::kRemainder, t, {1, 0}, kNan},
        {Op::kRemainder, t, {-1, kInf}, kInf},
        {Op::kFmod, t, {-7, 2}, -1},
        {Op::kSign, t, {-0.0}, 0.0},
        {Op::kSign, t, {kNan}, kNan},
        {Op::kSign, t, {-kInf}, -1},
        {Op::kRint, t, {2.5}, 2},
        {Op::kRint, t, {-0.5}, -0.0},
        {Op::kHeaviside, t, {0, 0.5}, 0.5},
        {Op::kHeaviside, t, {kNan, 0.5}, kNan},
        {Op::kHeaviside, t, {-1, 0.5}, 0},
        {Op::kLogaddexp, t, {-kInf, -kInf}, -kInf},
        {Op::kLogaddexp, t, {kInf, kInf}, kInf},
        {Op::kLogaddexp, t, {1000, 0}, 1000},
        {Op::kLogaddexp, t, {kNan, 0}, kNan},
        {Op::kCopysign, t, {3, -0.0}, -3},
        {Op::kSignbit, t, {-0.0}, 1},
        {Op::kLogicalNot, t, {kNan}, 0},
        {Op::kLogicalAnd, t, {kNan, 1}, 1},
        {Op::kEqual, t, {kNan, kNan}, 0},
        {Op::kNotEqual, t, {kNan, kNan}, 1},
        {Op::kLessEqual, t, {1, kNan}, 0},
        {Op::kIsFinite, t, {-kInf}, 0},
        {Op::kIsInf, t, {-kInf}, 1},
        {Op::kIsNan, t, {kNan}, 1},
        {Op::kClip, t, {kNan, 0, 1}, kNan},
        {Op::kClip, t, {0.5, kNan, 1}, kNan},
        {Op::kClip, t, {0.5, 0, kNan}, kNan},
        {Op::kClip, t, {2, 0, 1}, 1},
        {Op::kNextafter, t, {1, 1}, 1},
        {Op::kNextafter, t, {1, kNan}, kNan},
        {Op::kPower, t, {0, 0}, 1},
        {Op::kPower, t, {-8, 3}, -512},
        {Op::kDivide, t, {-1, 0}, -kInf},
        {Op::kAbsolute, t, {-0.0}, 0.0},
        {Op::kHypot, t, {3, -4}, 5},
        {Op::kRsqrt, t, {4}, 0.5},
        {Op::kWhere, t, {1, -2.5, 3}, -2.5},
        {Op::kTrunc, t, {-1.5}, -1},
    });
}

TEST(Elementwise, ComplexFollowsNumPy) {
  for (DType t : dtypes_of(kComplexSet)) {
    const Value i(0, 1);
    check_exactly({
        {Op::kMultiply, t, {Value(1, 2), Value(3, -1)}, Value(5, 5)},
        {Op::kDivide, t, {Value(6, 2), Value(2, 2)}, Value(2, -1)},
        {Op::kDivide, t, {Value(1, 1), 0}, Value(kInf, kInf)},
        {Op::kAbsolute, t, {Value(3, 4)}, 5},
        {Op::kSign, t, {Value(0, -4)}, Value(0, -1)},
        {Op::kSign, t, {0}, 0},
        {Op::kSign, t, {Value(-kInf, 1)}, -1},
        {Op::kConjugate, t, {i}, Value(0, -1)},
        {Op::kPower, t, {i, 2}, -1},
        {Op::kPower, t, {Value(1, 1), 0}, 1},
        {Op::kPower, t, {0, 2}, 0},
        {Op::kLess, t, {Value(1, 2), Value(1, 3)}, 1},
        {Op::kLess, t, {Value(2, 0), Value(1, 3)}, 0},
        {Op::kLessEqual, t, {Value(1, 3), Value(1, 3)}, 1},
        {Op::kLess, t, {Value(1, kNan), Value(2, 0)}, 0},
        {Op::kMaximum, t, {Value(1, 2), Value(1, 3)}, Value(1, 3)},
        {Op::kFmax, t, {Value(kNan, 2), Value(1, 3)}, Value(1, 3)},
        {Op::kEqual, t, {i, i}, 1},
        {Op::kIsNan, t, {Value(0, kNan)}, 1},
        {Op::kIsInf, t, {Value(0, -kInf)}, 1},
        {Op::kRint, t, {Value(2.5, -1.5)}, Value(2, -2)},
        {Op::kSqrt, t, {Value(-4, 0.0)}, Value(0, 2)},
        {Op::kSqrt, t, {Value(-4, -0.0)}, Value(0, -2)},
    });
    const Value tiny(1e-9, 1e-9);  // where 1 + z forgets z
    EXPECT_NEAR(eval(Op::kLog1p, t, {tiny}).real() / 1e-9, 1, 1e-6);
    EXPECT_NEAR(eval(Op::kExpm1, t, {tiny}).imag() / 1e-9, 1, 1e-6);
    EXPECT_NEAR(
        std::abs(eval(Op::kPower, t, {Value(2, 1), Value(1.5, -0.5)}) - std::pow(Value(2, 1), Value(1.5, -0.5))), 0,
        1e-5);
  }
  const Value scaled = eval(Op::kSign, DType::kComplex128, {Value(1.5e308, 1.5e308)});
  EXPECT_NEAR(scaled.real(), std::sqrt(0.5), 1e-15);
}

// Every elementary function against the standard library in double, in each format's precision.
TEST(Elementwise, FunctionsAreAccurate) {
  struct Function {
    Op op;
    double (*oracle)(double);
    double low, high;
  };
  constexpr Function kFunctions[] = {
      {Op::kSqrt, std::sqrt, 0, 100},    {Op::kCbrt, std::cbrt, -9, 9},      {Op::kExp, std::exp, -9, 9},
      {Op::kExp2, std::exp2, -9, 9},     {Op::kExpm1, std::expm1, -3, 3},    {Op::kLog, std::log, 0.01, 99},
      {Op::kLog2, std::log2, 0.01, 99},  {Op::kLog10, std::log10, 0.01, 99}, {Op::kLog1p, std::log1p, -0.9, 9},
      {Op::kSin, std::sin, -9, 9},       {Op::kCos, std::cos, -9, 9},        {Op::kTan, std::tan, -1.5, 1.5},
      {Op::kArcsin, std::asin, -1, 1},   {Op::kArccos, std::acos, -1, 1},    {Op::kArctan, std::atan, -9, 9},
      {Op::kSinh, std::sinh, -5, 5},     {Op::kCosh, std::cosh, -5, 5},      {Op::kTanh, std::tanh, -5, 5},
      {Op::kArcsinh, std::asinh, -9, 9}, {Op::kArccosh, std::acosh, 1, 9},   {Op::kArctanh, std::atanh, -0.9, 0.9},
      {Op::kErf, std::erf, -3, 3},       {Op::kFloor, std::floor, -9, 9},    {Op::kCeil, std::ceil, -9, 9},
  };
  const auto epsilon = [](DType t) {
    return t == DType::kFloat16 ? 0x1p-10 : t == DType::kBFloat16 ? 0x1p-7 : t == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
  };
  for (const Function& f : kFunctions)
    for (DType t : dtypes_of(kFloatSet))
      for (int step = 0; step <= 20; ++step) {
        alignas(16) unsigned char rounded[16];
        put_value(t, rounded, f.low + (f.high - f.low) * step / 20);
        const double x = value_at(t, rounded).real();
        const double want = f.oracle(x);
        EXPECT_NEAR(eval(f.op, t, {x}).real(), want, (std::abs(want) + 1e-3) * 2 * epsilon(t))
            << info(f.op).name << ' ' << info(t).name << ' ' << x;
      }
}

}  // namespace
}  // namespace dlbridge::nd
