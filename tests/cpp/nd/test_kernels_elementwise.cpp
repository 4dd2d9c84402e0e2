// The host's elementwise kernels: semantics by tables, layouts and casts against one element at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/functors/loop.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {
namespace {

using Value = std::complex<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<DType> dtypes_of(DTypeSet set) {
  std::vector<DType> list;
  for (unsigned d = 0; d < 32; ++d)
    if (contains(set, static_cast<DType>(d))) list.push_back(static_cast<DType>(d));
  return list;
}
std::size_t itemsize(DType t) { return info(t).itemsize; }

// Exact for what a double holds, with the wrap of integers.
void put(DType dtype, void* to, Value value) {
  const int rc = visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        T element;
        if constexpr (is_complex_v<T>)
          element = T(static_cast<real_t<T>>(value.real()), static_cast<real_t<T>>(value.imag()));
        else
          element = cast<T>(value.real());
        std::memcpy(to, &element, sizeof element);
        return 0;
      },
      -1);
  ASSERT_EQ(rc, 0);
}
Value get(DType dtype, const void* from) {
  return visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        T element;
        std::memcpy(&element, from, sizeof element);
        const auto wide = cast<complex<double>>(element);
        return Value(wide.real(), wide.imag());
      },
      Value());
}

DType result_dtype(Op op, DType compute) {
  if (info(op).rule == TypeRule::kCompare) return DType::kBool;
  if (info(op).rule != TypeRule::kReal) return compute;
  if (compute == DType::kComplex64) return DType::kFloat32;
  return compute == DType::kComplex128 ? DType::kFloat64 : compute;
}
DType operand_dtype(Op op, DType compute, int operand) {
  if (operand == 0) return result_dtype(op, compute);
  return op == Op::kWhere && operand == 1 ? DType::kBool : compute;
}

ElementwiseArgs make_args(Op op, DType compute) {
  ElementwiseArgs args{};
  args.op = op;
  args.compute = compute;
  args.operands = static_cast<std::uint8_t>(info(op).operands + 1);
  for (int k = 0; k < args.operands; ++k) args.dtype[k] = operand_dtype(op, compute, k);
  args.size = 1;
  return args;
}

// One element, 0-d.
Value eval(Op op, DType compute, std::vector<Value> inputs) {
  ElementwiseArgs args = make_args(op, compute);
  alignas(16) unsigned char memory[kMaxOperands][16] = {};
  for (int k = 0; k < args.operands; ++k) {
    args.data[k] = memory[k];
    if (k > 0) put(args.dtype[k], memory[k], inputs[static_cast<std::size_t>(k - 1)]);
  }
  EXPECT_EQ(host_kernels::elementwise(args), 0) << info(op).name << ' ' << info(compute).name;
  return get(args.dtype[0], memory[0]);
}

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
        put(t, rounded, f.low + (f.high - f.low) * step / 20);
        const double x = get(t, rounded).real();
        const double want = f.oracle(x);
        EXPECT_NEAR(eval(f.op, t, {x}).real(), want, (std::abs(want) + 1e-3) * 2 * epsilon(t))
            << info(f.op).name << ' ' << info(t).name << ' ' << x;
      }
}

TEST(Elementwise, EveryPairHasAKernelThatReadsEveryLayoutAlike) {
  // 5 x 7 x 9 elements; operand k is laid out by one of: dense, every other element, reversed, transposed, a
  // broadcast row, a broadcast column, a scalar. Each result is compared with a call on one element.
  constexpr std::int64_t kShape[] = {9, 7, 5};
  constexpr std::int64_t kCount = 9 * 7 * 5;
  std::mt19937 random(7);
  int turn = 0;
  for (std::size_t o = 0; o < kOps.size(); ++o)
    for (DType compute : dtypes_of(kOps[o].dtypes)) {
      const Op op = static_cast<Op>(o);
      ElementwiseArgs args = make_args(op, compute);
      args.ndim = 3;
      args.size = kCount;
      std::copy(std::begin(kShape), std::end(kShape), args.shape);
      std::vector<std::vector<unsigned char>> memory;
      for (int k = 0; k < args.operands; ++k) {
        const auto bytes = static_cast<std::int64_t>(itemsize(args.dtype[k]));
        memory.emplace_back(static_cast<std::size_t>(kCount * bytes * 2));
        unsigned char* base = memory.back().data();
        for (std::int64_t i = 0; i < kCount * 2; ++i)
          put(args.dtype[k], base + i * bytes,
              Value(static_cast<double>(random() % 9) - 2, static_cast<double>(random() % 5) / 2));
        std::int64_t strides[3] = {1, 9, 63};
        switch (k == 0 ? 0 : (turn + k) % 7) {
          case 1:
            strides[0] = 2, strides[1] = 18, strides[2] = 126;
            break;
          case 2:
            strides[0] = -1, base += 8 * bytes;
            break;
          case 3:
            strides[0] = 35, strides[1] = 5, strides[2] = 1;
            break;
          case 4:
            strides[1] = strides[2] = 0;
            break;
          case 5:
            strides[0] = 0;
            break;
          case 6:
            args.scalar_mask = static_cast<std::uint8_t>(args.scalar_mask | 1 << k);
            std::memcpy(args.scalars[k].bytes, base, static_cast<std::size_t>(bytes));
            strides[0] = strides[1] = strides[2] = 0;
            break;
          default:
            break;
        }
        args.data[k] = base;
        for (int d = 0; d < 3; ++d) args.strides[k][d] = strides[d] * bytes;
      }
      ++turn;
      ASSERT_EQ(host_kernels::elementwise(args), 0) << info(op).name << ' ' << info(compute).name;
      for (std::int64_t i = 0; i < kCount; i += 1 + static_cast<std::int64_t>(random() % 40)) {
        const std::int64_t at[] = {i % 9, i / 9 % 7, i / 63};
        ElementwiseArgs one = args;
        one.ndim = 0;
        one.size = 1;
        alignas(16) unsigned char out[16] = {};
        for (int k = 0; k < args.operands; ++k) {
          auto* p = static_cast<unsigned char*>(args.data[k]);
          for (int d = 0; d < 3; ++d) p += at[d] * args.strides[k][d];
          one.data[k] = k == 0 ? out : p;
        }
        ASSERT_EQ(host_kernels::elementwise(one), 0);
        ASSERT_EQ(std::memcmp(out, memory[0].data() + static_cast<std::size_t>(i) * itemsize(args.dtype[0]),
                              itemsize(args.dtype[0])),
                  0)
            << info(op).name << ' ' << info(compute).name << " at " << i;
      }
    }
}

TEST(Elementwise, MixedDtypesAreCastOnTheWayInAndOut) {
  constexpr std::int64_t kCount = 1300;  // more than two chunks
  for (DType in : {DType::kBool, DType::kInt8, DType::kUInt16, DType::kFloat16, DType::kFloat32, DType::kComplex64})
    for (DType out : {DType::kInt64, DType::kBFloat16, DType::kFloat64, DType::kComplex128}) {
      ElementwiseArgs args = make_args(Op::kAdd, DType::kInt32);  // also a cast of its own for the output
      args.dtype[0] = out;
      args.dtype[1] = in;
      args.contiguous = true;
      args.size = kCount;
      std::vector<unsigned char> a(kCount * itemsize(in)), b(kCount * 4), result(kCount * itemsize(out));
      for (std::size_t i = 0; i < kCount; ++i) {
        put(in, &a[i * itemsize(in)], static_cast<double>(i % 100));
        put(DType::kInt32, &b[i * 4], -static_cast<double>(i % 7) * 16);
      }
      args.data[0] = result.data();
      args.data[1] = a.data();
      args.data[2] = b.data();
      ASSERT_EQ(host_kernels::elementwise(args), 0);
      for (std::size_t i = 0; i < kCount; ++i) {
        const double x = in == DType::kBool ? (i % 100 != 0) : static_cast<double>(i % 100);
        ASSERT_EQ(get(out, &result[i * itemsize(out)]).real(), x - static_cast<double>(i % 7) * 16)
            << info(in).name << " to " << info(out).name << " at " << i;
      }
    }
}

TEST(Elementwise, CastsEveryPair) {
  for (DType from : dtypes_of(kAllSet))
    for (DType to : dtypes_of(kAllSet)) {
      std::vector<double> values{0, 1, 2, 5, 100};
      if (!contains(kUnsignedSet | kBoolSet, from)) values.insert(values.end(), {-1, -3, -100});
      if (contains(kInexactSet, from)) values.insert(values.end(), {0.5, 2.75, -2.75});
      for (double v : values) {
        alignas(16) unsigned char in[16], out[16] = {};
        put(from, in, Value(v, contains(kComplexSet, from) ? 2.0 : 0.0));
        ElementwiseArgs args = make_args(Op::kPositive, to);
        args.dtype[1] = from;
        args.data[0] = out;
        args.data[1] = in;
        ASSERT_EQ(host_kernels::elementwise(args), 0);
        const double x = from == DType::kBool ? v != 0 : v;
        Value want = x;
        if (to == DType::kBool)
          want = x != 0 || contains(kComplexSet, from);
        else if (contains(kUnsignedSet, to) && x < 0)  // modulo 2^bits
          want = itemsize(to) == 8 ? static_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(x)))
                                   : std::trunc(x) + std::ldexp(1.0, static_cast<int>(itemsize(to)) * 8);
        else if (contains(kIntSet, to))
          want = std::trunc(x);
        else if (contains(kComplexSet, to) && contains(kComplexSet, from))
          want = Value(x, 2);
        EXPECT_EQ(get(to, out), want) << info(from).name << " to " << info(to).name << ' ' << v;
      }
    }
}

TEST(Elementwise, HalvesRoundOnce) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float16 h{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(h);
    if (std::isnan(wide)) continue;
    ASSERT_EQ(to_float16(wide).bits, bits);
    ASSERT_EQ(to_float16(static_cast<double>(wide)).bits, bits);
    if ((bits & 0x7fffu) >= 0x7bffu) continue;  // the largest has no finite neighbour
    const double next = to_float(float16{static_cast<std::uint16_t>(bits + 1)});
    const double middle = (static_cast<double>(wide) + next) / 2;
    const std::uint16_t even = static_cast<std::uint16_t>(bits & 1u ? bits + 1 : bits);
    ASSERT_EQ(to_float16(middle).bits, even);
    const double towards = std::nextafter(middle, wide);  // a float32 in between would round it to the tie
    ASSERT_EQ(to_float16(towards).bits, bits);
    ASSERT_EQ(to_float16(std::nextafter(middle, next)).bits, bits + 1);
    const double limit = bits < 0x8000u ? kInf : -kInf;
    ASSERT_EQ(eval(Op::kNextafter, DType::kFloat16, {wide, limit}).real(), next);
  }
  EXPECT_EQ(to_float16(65519.99).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.0).bits, 0x7c00);
  EXPECT_EQ(to_bfloat16(1.00390625f).bits, 0x3f80);  // a tie, to even
  EXPECT_EQ(to_float(bfloat16{to_bfloat16(std::nanf("")).bits}) == 0, false);
  EXPECT_EQ(eval(Op::kNextafter, DType::kBFloat16, {1, 2}).real(), 1.0078125);
  EXPECT_EQ(eval(Op::kNextafter, DType::kFloat32, {0, -1}).real(), -0x1p-149);
}

TEST(Elementwise, PermutedCopiesOfEverySize) {
  for (DType t : {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex128})
    for (const auto& shape : {std::vector<std::int64_t>{70, 90}, {200, 33}, {3, 1000}, {1000, 3}, {20, 30, 17}}) {
      const auto ndim = static_cast<int>(shape.size());
      const auto bytes = static_cast<std::int64_t>(itemsize(t));
      ElementwiseArgs args = make_args(Op::kPositive, t);
      args.ndim = ndim;
      args.size = 1;
      std::int64_t stride = bytes;
      for (int d = 0; d < ndim; ++d) {
        args.shape[d] = shape[static_cast<std::size_t>(d)];
        args.strides[0][d] = stride;
        stride *= args.shape[d];
        args.size *= args.shape[d];
      }
      stride = bytes;
      for (int d = ndim - 1; d >= 0; --d) {  // the input lies the other way round
        args.strides[1][d] = stride;
        stride *= args.shape[d];
      }
      std::vector<unsigned char> in(static_cast<std::size_t>(args.size * bytes)), out(in.size());
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7 + i / 251);
      args.data[0] = out.data();
      args.data[1] = in.data();
      ASSERT_EQ(host_kernels::elementwise(args), 0);
      for (std::int64_t i = 0; i < args.size; ++i) {
        std::int64_t rest = i, offset = 0;
        for (int d = 0; d < ndim; ++d) offset += rest % args.shape[d] * args.strides[1][d], rest /= args.shape[d];
        ASSERT_EQ(std::memcmp(&out[static_cast<std::size_t>(i * bytes)], &in[static_cast<std::size_t>(offset)],
                              static_cast<std::size_t>(bytes)),
                  0)
            << info(t).name << " at " << i;
      }
    }
}

TEST(Elementwise, WorksInPlaceAndRefusesWhatHasNoKernel) {
  std::vector<float> x(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  ElementwiseArgs args = make_args(Op::kAdd, DType::kFloat32);
  args.contiguous = true;
  args.size = 1000;
  args.data[0] = args.data[1] = args.data[2] = x.data();
  ASSERT_EQ(host_kernels::elementwise(args), 0);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], 2.0f * static_cast<float>(i));
  args.compute = DType::kFloat8E5M2;
  EXPECT_EQ(host_kernels::elementwise(args), kErrorUnsupported);
  EXPECT_EQ(host_kernels::elementwise(make_args(Op::kGcd, DType::kFloat32)), kErrorUnsupported);
}

// --- what the device's launches are made of ---------------------------------------------------------------------------

// Marks each element of the output that a part of the loop reaches; parts must not overlap.
void mark(const Loop& part, const char* base, std::vector<int>& counts) {
  for (std::int64_t i = 0; i < part.size(); ++i) {
    std::int64_t rest = i;
    const char* p = part.data[0];
    for (int d = 0; d < part.ndim; ++d) p += rest % part.shape[d] * part.strides[0][d], rest /= part.shape[d];
    ++counts[static_cast<std::size_t>(p - base)];
  }
}

TEST(Loop, PartsAndTilesCoverEveryElementOnce) {
  const int itemsizes[] = {4, 4};
  for (const auto& shape : {std::vector<std::int64_t>{70, 90}, {33, 1, 45}, {3, 500, 2}, {7, 20, 30}, {257}}) {
    ElementwiseArgs args = make_args(Op::kPositive, DType::kFloat32);
    args.ndim = static_cast<int>(shape.size());
    std::int64_t size = 1;
    for (int d = 0; d < args.ndim; ++d) {
      args.shape[d] = shape[static_cast<std::size_t>(d)];
      args.strides[0][d] = size;  // the output's addresses count its elements
      size *= args.shape[d];
    }
    std::int64_t stride = 4;
    for (int d = args.ndim - 1; d >= 0; --d) args.strides[1][d] = stride, stride *= args.shape[d];
    std::vector<char> out(static_cast<std::size_t>(size)), in(out.size() * 4);
    args.data[0] = out.data();
    args.data[1] = in.data();
    const Loop loop = make_loop(args, itemsizes);
    std::vector<int> parts(static_cast<std::size_t>(size)), tiles(parts.size());
    EXPECT_EQ(for_each_32bit_part(loop, 1000,
                                  [&](const Loop& part) {
                                    EXPECT_LE(part.size(), 1000);
                                    EXPECT_LE(extent_bytes(part, 1), 1000);
                                    mark(part, out.data(), parts);
                                    return 0;
                                  }),
              0);
    EXPECT_EQ(parts, std::vector<int>(parts.size(), 1));
    const TilePair pair = transposed_dims(loop, itemsizes);
    if (loop.ndim == 1) continue;
    ASSERT_NE(pair.across, 0);
    EXPECT_EQ(for_each_tiled_part(loop, pair, 1024,
                                  [&](const Loop& part) {
                                    mark(part, out.data(), tiles);
                                    return 0;
                                  }),
              0);
    EXPECT_EQ(tiles, std::vector<int>(tiles.size(), 1));
  }
}

template <class U>
void check_divider() {
  constexpr int kBits = sizeof(U) * 8;
  constexpr U kMost = ~U{0} >> 1;
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    const U d = i < 300 ? static_cast<U>(i + 1) : 1 + (static_cast<U>(random()) >> (2 + i % (kBits - 2)));
    const auto divider = BasicDivider<U>::of(static_cast<std::int64_t>(d));
    for (const U n : {U{0}, d - 1, d, 2 * (d / 2) + 1, kMost / d * d, kMost / d * d - 1, static_cast<U>(random()), kMost}) {
      U rest = n & kMost;
      ASSERT_EQ(divider.quotient(rest), rest / d) << n << " / " << d;
      ASSERT_EQ(divider.split(rest), (n & kMost) % d);
      ASSERT_EQ(rest, (n & kMost) / d);
    }
  }
}
TEST(Divider, IsExact) {
  check_divider<std::uint32_t>();
  check_divider<std::uint64_t>();
}

TEST(Range, CountsInEveryDtype) {
  for (DType t : dtypes_of(kRealSet)) {
    std::vector<unsigned char> out(50 * itemsize(t));
    RangeArgs args{};
    args.dtype = t;
    args.n = 50;
    args.out = out.data();
    args.start = 3;
    args.step = 2;
    args.int_start = 3;
    args.int_step = 2;
    ASSERT_EQ(host_kernels::range(args), 0);
    for (std::size_t i = 0; i < 50; ++i)
      ASSERT_EQ(get(t, &out[i * itemsize(t)]).real(), 3.0 + 2.0 * static_cast<double>(i));
  }
  double points[4];
  RangeArgs linspace{};
  linspace.dtype = DType::kFloat64;
  linspace.n = 4;
  linspace.out = points;
  linspace.start = 0.1;
  linspace.stop = 0.7;
  linspace.step = 0.6 / 3;
  linspace.endpoint = true;
  ASSERT_EQ(host_kernels::range(linspace), 0);
  EXPECT_EQ(points[3], 0.7);
  EXPECT_EQ(points[1], 0.1 + 0.6 / 3);
}

}  // namespace
}  // namespace dlbridge::nd
