// How the host's elementwise kernels read and write: layouts against one element at a time, casts, rounding, permuted
// copies, in place.
#include <cmath>
#include <numeric>
#include <random>

#include "tests/cpp/nd/elementwise_cases.h"

namespace dlbridge::nd {
namespace {

using namespace testing_cases;

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
          put_value(args.dtype[k], base + i * bytes,
                    Value(static_cast<double>(random() % 9) - 2, static_cast<double>(random() % 5) / 2));
        std::int64_t strides[3] = {1, 9, 63};
        switch (k == 0 ? 0 : (turn + k) % 7) {
          case 1: strides[0] = 2, strides[1] = 18, strides[2] = 126; break;
          case 2: strides[0] = -1, base += 8 * bytes; break;
          case 3: strides[0] = 35, strides[1] = 5, strides[2] = 1; break;
          case 4: strides[1] = strides[2] = 0; break;
          case 5: strides[0] = 0; break;
          case 6:
            args.scalar_mask = static_cast<std::uint8_t>(args.scalar_mask | 1 << k);
            std::memcpy(args.scalars[k].bytes, base, static_cast<std::size_t>(bytes));
            strides[0] = strides[1] = strides[2] = 0;
            break;
          default: break;
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
        put_value(in, &a[i * itemsize(in)], static_cast<double>(i % 100));
        put_value(DType::kInt32, &b[i * 4], -static_cast<double>(i % 7) * 16);
      }
      args.data[0] = result.data();
      args.data[1] = a.data();
      args.data[2] = b.data();
      ASSERT_EQ(host_kernels::elementwise(args), 0);
      for (std::size_t i = 0; i < kCount; ++i) {
        const double x = in == DType::kBool ? (i % 100 != 0) : static_cast<double>(i % 100);
        ASSERT_EQ(value_at(out, &result[i * itemsize(out)]).real(), x - static_cast<double>(i % 7) * 16)
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
        put_value(from, in, Value(v, contains(kComplexSet, from) ? 2.0 : 0.0));
        ElementwiseArgs args = make_args(Op::kPositive, to);
        args.dtype[1] = from;
        args.data[0] = out;
        args.data[1] = in;
        ASSERT_EQ(host_kernels::elementwise(args), 0);
        const double x = from == DType::kBool ? v != 0 : v;
        Value want = x;
        if (to == DType::kBool) want = x != 0 || contains(kComplexSet, from);
        else if (contains(kUnsignedSet, to) && x < 0)  // modulo 2^bits
          want = itemsize(to) == 8 ? static_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(x)))
                                   : std::trunc(x) + std::ldexp(1.0, static_cast<int>(itemsize(to)) * 8);
        else if (contains(kIntSet, to)) want = std::trunc(x);
        else if (contains(kComplexSet, to) && contains(kComplexSet, from)) want = Value(x, 2);
        EXPECT_EQ(value_at(to, out), want) << info(from).name << " to " << info(to).name << ' ' << v;
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

}  // namespace
}  // namespace dlbridge::nd
