// The host's scans against plain oracles.
#include <gtest/gtest.h>

#include "ndarray/kernels/functions.h"
#include "tests/cpp/nd/reduce_cases.h"

namespace dlbridge::nd {
namespace {

using namespace testing_cases;

struct Shape {
  std::int64_t outer, n, inner;
};

// Values are small and exact, so that the sums are, in every dtype but the 16-bit floats, which round on store alone.
void check(ScanOp op, DType in, DType out, const Shape& s) {
  const std::int64_t total = s.outer * s.n * s.inner, in_size = info(in).itemsize, out_size = info(out).itemsize;
  const std::vector<unsigned char> x = random_buffer(in, total, 3);
  std::vector<unsigned char> y(static_cast<std::size_t>(total * out_size), 0xcd);
  const ScanArgs args = dense_scan(op, in, out, s.outer, s.n, s.inner, x.data(), y.data());
  ASSERT_EQ(host_kernels::scan(args), 0);
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t c = 0; c < s.inner; ++c) {
      Value want = op == ScanOp::kSum ? 0 : 1;
      for (std::int64_t i = 0; i < s.n; ++i) {
        const std::int64_t at = (o * s.n + i) * s.inner + c;
        const Value v = value_at(in, x.data() + at * in_size);
        want = op == ScanOp::kSum ? want + v
                                  : Value(want.real() * v.real() - want.imag() * v.imag(),
                                          want.real() * v.imag() + want.imag() * v.real());
        const Value got = value_at(out, y.data() + at * out_size);
        ASSERT_TRUE(close(got, want, out, i))
            << info(in).name << " to " << info(out).name << " (" << s.outer << ", " << s.n << ", " << s.inner << ") at "
            << at << ": " << got << ", want " << want;
      }
    }
}

TEST(HostScan, EveryDTypeAlongRowsAndColumns) {
  for (const DType in : {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
                         DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16,
                         DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128})
    for (const Shape& s : {Shape{1, 1, 1}, Shape{3, 29, 1}, Shape{2, 600, 1}, Shape{2, 7, 5}, Shape{1, 3, 300}}) {
      check(ScanOp::kSum, in, default_accumulate(ReduceOp::kSum, in), s);
      if (s.n <= 3) check(ScanOp::kProd, in, default_accumulate(ReduceOp::kProd, in), s);
    }
}

TEST(HostScan, CastsOnLoad) {
  for (const Shape& s : {Shape{2, 300, 1}, Shape{1, 9, 4}}) {
    check(ScanOp::kSum, DType::kInt16, DType::kFloat32, s);
    check(ScanOp::kSum, DType::kFloat32, DType::kFloat64, s);
    check(ScanOp::kSum, DType::kFloat16, DType::kComplex64, s);
    check(ScanOp::kSum, DType::kUInt8, DType::kInt32, s);
  }
}

TEST(HostScan, NarrowIntegersWrap) {
  const std::vector<std::int8_t> x{100, 100, 100};
  std::vector<std::int8_t> y(3);
  const ScanArgs args = dense_scan(ScanOp::kSum, DType::kInt8, DType::kInt8, 1, 3, 1, x.data(), y.data());
  ASSERT_EQ(host_kernels::scan(args), 0);
  EXPECT_EQ(y, (std::vector<std::int8_t>{100, -56, 44}));
}

TEST(HostScan, ReadsWhatLiesApart) {
  const std::vector<std::int16_t> x{1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6};  // (1, 3, 2), every other, backwards
  std::vector<std::int64_t> y(6);
  ScanArgs args = dense_scan(ScanOp::kSum, DType::kInt16, DType::kInt64, 1, 3, 2, x.data() + 10, y.data());
  args.in_steps[1] = -8;
  args.in_steps[2] = -4;
  ASSERT_EQ(host_kernels::scan(args), 0);
  EXPECT_EQ(y, (std::vector<std::int64_t>{6, 5, 10, 8, 12, 9}));
}

TEST(HostScan, InPlace) {
  std::vector<double> x{1, 2, 3, 4};
  const ScanArgs args = dense_scan(ScanOp::kProd, DType::kFloat64, DType::kFloat64, 2, 2, 1, x.data(), x.data());
  ASSERT_EQ(host_kernels::scan(args), 0);
  EXPECT_EQ(x, (std::vector<double>{1, 2, 3, 12}));
}

}  // namespace
}  // namespace dlbridge::nd
