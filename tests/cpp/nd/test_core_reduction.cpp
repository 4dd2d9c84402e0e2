// Reductions along axes of arrays of any layout, against sums made by hand.
#include "ndarray/core/reduction.h"
#include "ndarray/core/sorting.h"

#include <algorithm>

#include "ndarray/core/views.h"
#include "tests/cpp/nd/arrays.h"

namespace dlbridge::nd {
namespace {

using namespace testing_arrays;

// 24 elements as (2, 3, 4), in C order 0, 1, 2, …
Tensor block(const Extents& axes) {
  const Tensor t = dense(DType::kInt32, Extents{24});
  fill_iota<std::int32_t>(t);
  Tensor out, permuted;
  std::int64_t shape[] = {2, 3, 4};
  expect_ok(reshape(t, shape, Order::kC, std::nullopt, out));
  expect_ok(permute(out, axes, permuted));
  return permuted;
}

struct AxisCase {
  const char* id;
  Extents axes;  // of the view
  AxisMask reduced;
  bool keepdims;
  Extents shape;
};
class Reductions : public testing::TestWithParam<AxisCase> {};
TEST_P(Reductions, SumOverTheirAxes) {
  const AxisCase& c = GetParam();
  const Tensor x = block(c.axes);
  Tensor sum;
  ReduceOptions options;
  options.keepdims = c.keepdims;
  expect_ok(reduce(ReduceOp::kSum, x, c.reduced, options, sum));
  EXPECT_EQ(shape_list(sum), c.shape);
  EXPECT_EQ(dtype_of(sum), DType::kInt64);
  EXPECT_TRUE(owns_memory(sum));
  std::vector<std::int64_t> expected(static_cast<std::size_t>(sum.size));
  const std::vector<std::int32_t> values = elements<std::int32_t>(x);
  for (std::int64_t i = 0; i < x.size; ++i) {
    std::int64_t rest = i, slot = 0, step = 1;
    for (int axis = 2; axis >= 0; --axis) {
      if (((c.reduced >> axis) & 1) == 0) slot += rest % x.dl.shape[axis] * step, step *= x.dl.shape[axis];
      rest /= x.dl.shape[axis];
    }
    expected[static_cast<std::size_t>(slot)] += values[static_cast<std::size_t>(i)];
  }
  EXPECT_EQ(elements<std::int64_t>(sum), expected);
}
INSTANTIATE_TEST_SUITE_P(Axes, Reductions,
                         testing::Values(AxisCase{"all", {0, 1, 2}, 0b111, false, {}},
                                         AxisCase{"all_kept_as_ones", {0, 1, 2}, 0b111, true, {1, 1, 1}},
                                         AxisCase{"first", {0, 1, 2}, 0b001, false, {3, 4}},
                                         AxisCase{"middle", {0, 1, 2}, 0b010, true, {2, 1, 4}},
                                         AxisCase{"last", {0, 1, 2}, 0b100, false, {2, 3}},
                                         AxisCase{"outer_two_of_a_transposed", {2, 0, 1}, 0b101, false, {2}},
                                         AxisCase{"inner_of_a_transposed", {2, 1, 0}, 0b100, true, {4, 3, 1}},
                                         AxisCase{"none", {0, 1, 2}, 0, false, {2, 3, 4}}),
                         [](const auto& test) { return std::string(test.param.id); });

TEST(Reduction, GivesThePositionInCOrderWhateverTheLayout) {
  const Tensor x = block({2, 0, 1});  // (4, 2, 3); the largest element is the last
  Tensor position;
  expect_ok(reduce(ReduceOp::kArgmax, x, 0b111, {}, position));
  EXPECT_EQ(elements<std::int64_t>(position), std::vector<std::int64_t>{23});
  expect_ok(reduce(ReduceOp::kArgmin, x, 0b110, {}, position = Tensor()));
  EXPECT_EQ(elements<std::int64_t>(position), (std::vector<std::int64_t>{0, 0, 0, 0}));
  Tensor reversed;  // the smallest is now the last of six
  const std::int64_t shape[] = {6}, strides[] = {-1};
  const Tensor counted = strided(DType::kInt32, shape, strides);
  std::iota(static_cast<std::int32_t*>(counted.dl.data) - 5, static_cast<std::int32_t*>(counted.dl.data) + 1, 0);
  expect_ok(reduce(ReduceOp::kArgmin, counted, 1, {}, reversed));
  EXPECT_EQ(elements<std::int64_t>(reversed), std::vector<std::int64_t>{5});
}

TEST(Reduction, OfAnEmptyAxisNeedsAnIdentity) {
  const Tensor x = dense(DType::kFloat32, Extents{2, 0});
  Tensor out;
  expect_ok(reduce(ReduceOp::kProd, x, 0b10, {}, out));
  EXPECT_EQ(elements<float>(out), (std::vector<float>{1, 1}));
  EXPECT_FALSE(reduce(ReduceOp::kMax, x, 0b10, {}, out = Tensor()).ok());
  expect_ok(reduce(ReduceOp::kMax, x, 0b01, {}, out = Tensor()));
  EXPECT_EQ(shape_list(out), Extents{0});
}

TEST(Reduction, RefusesADtypeThatItsResultHasNot) {
  const Tensor x = block({0, 1, 2});
  for (const auto& [op, dtype] : {std::pair{ReduceOp::kAny, DType::kInt8},
                                  {ReduceOp::kArgmax, DType::kFloat32},
                                  {ReduceOp::kMean, DType::kInt64}}) {
    ReduceOptions options;
    options.dtype = dtype;
    Tensor out;
    EXPECT_EQ(reduce(op, x, 0b111, options, out).issue().code, ErrorCode::kWrongType) << info(op).name;
  }
}

TEST(Scan, RunsAlongItsAxisInEachLayout) {
  const Tensor x = block({1, 0, 2});  // (3, 2, 4)
  for (const int axis : {0, 1, 2}) {
    Tensor out;
    expect_ok(scan(ScanOp::kSum, x, axis, std::nullopt, out));
    const std::vector<std::int32_t> values = elements<std::int32_t>(x);
    const std::vector<std::int64_t> sums = elements<std::int64_t>(out);
    const std::int64_t step = axis == 2 ? 1 : axis == 1 ? 4 : 8, n = x.dl.shape[axis];
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t before = i / step % n == 0 ? 0 : sums[static_cast<std::size_t>(i - step)];
      EXPECT_EQ(sums[static_cast<std::size_t>(i)], before + values[static_cast<std::size_t>(i)]) << axis << " " << i;
    }
  }
}

TEST(Sort, AlongAnAxisThatIsNotTheLast) {
  Tensor x = block({2, 0, 1}), sorted, positions;
  SortOptions options;
  options.descending = true;
  expect_ok(sort(x, 0, options, sorted));
  expect_ok(argsort(x, 0, options, positions));
  EXPECT_EQ(shape_list(sorted), shape_list(x));
  const std::vector<std::int32_t> values = elements<std::int32_t>(x), down = elements<std::int32_t>(sorted);
  const std::vector<std::int64_t> places = elements<std::int64_t>(positions);
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(down[i], values[i % 6 + (3 - i / 6) * 6]);
    EXPECT_EQ(places[i], static_cast<std::int64_t>(3 - i / 6));
  }
}

}  // namespace
}  // namespace dlbridge::nd
