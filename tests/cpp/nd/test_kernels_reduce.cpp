// The host's reductions against plain oracles.
#include <gtest/gtest.h>

#include "ndarray/kernels/functions.h"
#include "tests/cpp/nd/reduce_cases.h"

namespace dlbridge::nd {
namespace {

using namespace testing_cases;

constexpr DType kDTypesOfArrays[] = {DType::kBool,    DType::kInt8,      DType::kInt16,     DType::kInt32,
                                     DType::kInt64,   DType::kUInt8,     DType::kUInt16,    DType::kUInt32,
                                     DType::kUInt64,  DType::kFloat16,   DType::kBFloat16,  DType::kFloat32,
                                     DType::kFloat64, DType::kComplex64, DType::kComplex128};

// Runs a reduction; fails the test where a value is off.
void check(ReduceOp op, DType in, DType accumulate, DType out_dtype, const View& view, unsigned reduced,
           double correction = 0, bool specials = false) {
  const std::vector<unsigned char> buffer = random_buffer(in, view.span(), 7, specials);
  ReduceArgs args = make_args(op, in, accumulate, out_dtype, view, reduced);
  const std::int64_t itemsize = info(out_dtype).itemsize;
  std::vector<unsigned char> out(static_cast<std::size_t>(args.kept_size * itemsize), 0xcd);
  args.in = buffer.data() + view.offset * info(in).itemsize;
  args.out = out.data();
  args.correction = correction;
  ASSERT_EQ(host_kernels::reduce(args), 0);
  const std::vector<Value> want = expected(op, in, buffer.data(), view, reduced, correction);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Value got = value_at(out_dtype, out.data() + static_cast<std::int64_t>(i) * itemsize);
    ASSERT_TRUE(close(got, want[i], out_dtype, args.reduced_size))
        << info(op).name << " of " << info(in).name << " to " << info(out_dtype).name << " over " << view.id << " axes "
        << reduced << " at " << i << ": " << got << ", want " << want[i];
  }
}

void check_default(ReduceOp op, DType in, const View& view, unsigned reduced, double correction = 0,
                   bool specials = false) {
  check(op, in, default_accumulate(op, in), default_out(op, in), view, reduced, correction, specials);
}

std::vector<View> views() {
  return {dense({37}),
          dense({5, 33}),
          dense({33, 5}, 1),
          transposed(dense({5, 33})),
          stepped(dense({6, 34}), 1, 2),
          stepped(stepped(dense({7, 9}), 0, -1), 1, -2),
          dense({3, 4, 19}),
          transposed(dense({4, 3, 6})),
          dense({300, 17}),
          dense({17, 300}),
          stepped(dense({140, 50}), 1, 2),
          {"broadcast", {4, 5}, {0, 1}, 0},
          {"broadcast_inside", {5, 4}, {1, 0}, 0},
          {"broadcast_twice", {3, 19, 7}, {0, 1, 0}, 0}};
}

TEST(HostReduce, EveryOpOfEveryDTypeOverEveryAxis) {
  for (std::size_t o = 0; o < kReduceOps.size(); ++o) {
    const auto op = static_cast<ReduceOp>(o);
    const bool small = op == ReduceOp::kProd;  // products of many quarters overflow
    for (const DType in : kDTypesOfArrays) {
      if (!contains(kReduceOps[o].dtypes, in)) continue;
      for (const View& view : small ? std::vector<View>{dense({3, 4}), transposed(dense({2, 5}))} : views())
        for (unsigned reduced = 1; reduced < (1u << view.shape.size()); ++reduced)
          check_default(op, in, view, reduced, op == ReduceOp::kVar ? 1 : 0);
    }
  }
}

TEST(HostReduce, NanAndInfinityPropagate) {
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kArgmax, ReduceOp::kArgmin, ReduceOp::kNormInf,
                            ReduceOp::kNormMinusInf, ReduceOp::kAny, ReduceOp::kCountNonzero}) {
    for (const DType in : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex128})
      for (const View& view : {dense({40, 40}), transposed(dense({40, 40}))})
        for (const unsigned reduced : {1u, 2u, 3u}) check_default(op, in, view, reduced, 0, true);
  }
}

TEST(HostReduce, CastsOnLoadAndOfTheResult) {
  const struct {
    ReduceOp op;
    DType in, accumulate, out;
  } cases[] = {
      {ReduceOp::kSum, DType::kFloat32, DType::kFloat64, DType::kFloat64},
      {ReduceOp::kSum, DType::kFloat16, DType::kFloat32, DType::kFloat32},
      {ReduceOp::kSum, DType::kInt16, DType::kFloat32, DType::kFloat32},
      {ReduceOp::kSum, DType::kInt32, DType::kInt32, DType::kInt32},
      {ReduceOp::kSum, DType::kUInt8, DType::kInt16, DType::kInt16},
      {ReduceOp::kSum, DType::kFloat64, DType::kComplex128, DType::kComplex128},
      {ReduceOp::kSum, DType::kBool, DType::kFloat64, DType::kFloat64},
      {ReduceOp::kProd, DType::kBool, DType::kInt64, DType::kInt64},
      {ReduceOp::kMean, DType::kInt8, DType::kFloat64, DType::kFloat64},
      {ReduceOp::kMean, DType::kBool, DType::kFloat64, DType::kFloat64},
      {ReduceOp::kMean, DType::kInt64, DType::kFloat64, DType::kFloat64},
      {ReduceOp::kMean, DType::kFloat32, DType::kComplex64, DType::kComplex64},
      {ReduceOp::kVar, DType::kInt32, DType::kFloat64, DType::kFloat64},
      {ReduceOp::kStd, DType::kFloat32, DType::kFloat64, DType::kFloat32},
      {ReduceOp::kNorm2, DType::kInt32, DType::kFloat64, DType::kFloat64},
      {ReduceOp::kNormInf, DType::kComplex64, DType::kComplex128, DType::kFloat64},
      {ReduceOp::kMax, DType::kInt16, DType::kInt16, DType::kInt32},
      {ReduceOp::kArgmax, DType::kInt16, DType::kInt16, DType::kInt32},
      {ReduceOp::kAny, DType::kFloat32, DType::kFloat32, DType::kInt32},
  };
  for (const auto& c : cases)
    for (const View& view : {dense({6, 11}), transposed(dense({6, 11})), dense({1, 300})}) {
      if (c.op == ReduceOp::kProd && view.size() > 66) continue;
      for (const unsigned reduced : {1u, 2u, 3u}) check(c.op, c.in, c.accumulate, c.out, view, reduced);
    }
}

double reduce_floats(ReduceOp op, const std::vector<float>& x) {
  ReduceArgs args =
      make_args(op, DType::kFloat32, DType::kFloat32, DType::kFloat32, dense({static_cast<std::int64_t>(x.size())}), 1);
  float out = -1;
  args.in = x.data();
  args.out = &out;
  EXPECT_EQ(host_kernels::reduce(args), 0);
  return out;
}

TEST(HostReduce, SumsOfManyFloatsStayExact) {
  // A running sum of 2^22 times 0.1f is off by more than 1e-3.
  EXPECT_NEAR(reduce_floats(ReduceOp::kSum, std::vector<float>(1 << 22, 0.1f)) / (0.1 * (1 << 22)), 1, 1e-6);
}

TEST(HostReduce, VarianceFarFromZeroAndWithAnOutlier) {
  std::vector<float> x(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1e6f + static_cast<float>(i % 2);
  EXPECT_NEAR(reduce_floats(ReduceOp::kVar, x), 0.25, 1e-6);
  x[0] = 0;  // a shift by the first element would lose the rest
  const double mean_shift = 1e6 * 1e6 * (1.0 / 4096) * (1 - 1.0 / 4096);
  EXPECT_NEAR(reduce_floats(ReduceOp::kVar, x) / mean_shift, 1, 1e-5);
  EXPECT_EQ(reduce_floats(ReduceOp::kVar, std::vector<float>(1000, 0.1f)), 0);
}

TEST(HostReduce, EmptyRowsGiveTheIdentity) {
  const View view = dense({3, 0});
  const struct {
    ReduceOp op;
    double want;
  } cases[] = {
      {ReduceOp::kSum, 0}, {ReduceOp::kProd, 1}, {ReduceOp::kNorm2, 0}, {ReduceOp::kMean, NAN}, {ReduceOp::kVar, NAN}};
  for (const auto& c : cases) {
    ReduceArgs args = make_args(c.op, DType::kFloat32, DType::kFloat32, DType::kFloat32, view, 2);
    float out[3] = {7, 7, 7};
    args.out = out;
    ASSERT_EQ(host_kernels::reduce(args), 0);
    for (const float x : out) EXPECT_TRUE(close(x, c.want, DType::kFloat32, 0)) << info(c.op).name << ": " << x;
  }
  ReduceArgs args = make_args(ReduceOp::kAll, DType::kFloat32, DType::kFloat32, DType::kBool, view, 2);
  bool out[3] = {};
  args.out = out;
  ASSERT_EQ(host_kernels::reduce(args), 0);
  EXPECT_TRUE(out[0] && out[1] && out[2]);
}

TEST(HostReduce, IntegersWrapAt64Bits) {
  const std::vector<std::int64_t> x{std::numeric_limits<std::int64_t>::max(), 1};
  ReduceArgs args = make_args(ReduceOp::kSum, DType::kInt64, DType::kInt64, DType::kInt64, dense({2}), 1);
  std::int64_t out = 0;
  args.in = x.data();
  args.out = &out;
  ASSERT_EQ(host_kernels::reduce(args), 0);
  EXPECT_EQ(out, std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace dlbridge::nd
