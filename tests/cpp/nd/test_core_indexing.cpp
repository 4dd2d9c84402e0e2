// x[key] and x[key] = value: which elements a key names.
#include "ndarray/core/indexing.h"

#include <optional>

#include "ndarray/core/fill.h"
#include "tests/cpp/nd/arrays.h"

namespace dlbridge::nd {
namespace {

using namespace testing_arrays;
using Kind = IndexItem::Kind;

IndexItem at(std::int64_t i) { return {Kind::kInteger, i}; }
IndexItem slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop, std::int64_t step = 1) {
  return {Kind::kSlice, start.value_or(0), stop.value_or(0), step, start.has_value(), stop.has_value()};
}
IndexItem of(const Tensor& array) { return {Kind::kArray, 0, 0, 1, false, false, &array}; }
const IndexItem kAll = slice({}, {}), kEllipsis{Kind::kEllipsis}, kNewAxis{Kind::kNewAxis};

Tensor counted(Dims shape) {
  Tensor t = dense(DType::kInt32, shape);
  fill_iota<std::int32_t>(t);
  return t;
}
Tensor positions(const std::vector<std::int64_t>& values, DType dtype = DType::kInt64) {
  std::vector<Scalar> scalars;
  for (const std::int64_t v : values) scalars.push_back(Scalar::of_int(v));
  const std::int64_t shape[] = {static_cast<std::int64_t>(values.size())};
  Tensor out;
  expect_ok(make_from<Scalar>(out, scalars, dtype, shape));
  return out;
}

struct Key {
  const char* id;
  std::vector<IndexItem> items;
  Extents shape;
  std::vector<std::int32_t> values;
};

class BasicKeys : public testing::TestWithParam<Key> {};
TEST_P(BasicKeys, GiveViews) {  // of (3, 4)
  const Tensor x = counted(Extents{3, 4});
  Tensor out;
  ASSERT_TRUE(is_basic(GetParam().items));
  expect_ok(view_at(x, GetParam().items, out));
  EXPECT_EQ(shape_list(out), GetParam().shape);
  EXPECT_EQ(elements<std::int32_t>(out), GetParam().values);
  EXPECT_EQ(storage_of(out), storage_of(x));
}
INSTANTIATE_TEST_SUITE_P(Keys, BasicKeys,
                         testing::Values(Key{"integer", {at(1)}, {4}, {4, 5, 6, 7}},
                                         Key{"negative_integers", {at(-1), at(-4)}, {}, {8}},
                                         Key{"slice", {slice(1, 3), slice(0, 1)}, {2, 1}, {4, 8}},
                                         Key{"slice_past_the_end", {at(0), slice(2, 99)}, {2}, {2, 3}},
                                         Key{"slice_from_the_end", {at(0), slice(-2, {})}, {2}, {2, 3}},
                                         Key{"backwards", {at(0), slice({}, {}, -2)}, {2}, {3, 1}},
                                         Key{"backwards_between", {at(0), slice(2, 0, -1)}, {2}, {2, 1}},
                                         Key{"empty_slice", {slice(2, 1)}, {0, 4}, {}},
                                         Key{"step_past_all", {at(0), slice(1, {}, 9)}, {1}, {1}},
                                         Key{"ellipsis", {kEllipsis, at(1)}, {3}, {1, 5, 9}},
                                         Key{"new_axes", {kNewAxis, at(0), kNewAxis, slice(0, 2)}, {1, 1, 2}, {0, 1}}),
                         [](const auto& test) { return std::string(test.param.id); });

TEST(Keys, OutOfBoundsOrTooManyAreIndexErrors) {
  const Tensor x = counted(Extents{3, 4});
  for (const std::vector<IndexItem>& items :
       {std::vector{at(3)}, {at(-4)}, {at(0), at(0), at(0)}, {kEllipsis, kEllipsis}, std::vector(65, kNewAxis)}) {
    Tensor out;
    EXPECT_EQ(view_at(x, items, out).issue().code, ErrorCode::kIndex);
  }
}

TEST(ArrayKeys, ReplaceTheAxesThatTheyIndex) {
  const Tensor x = counted(Extents{2, 3, 4});
  const Tensor rows = positions({1, 0}), columns = positions({-1, 2}, DType::kInt8);
  const auto gather = [&](const std::vector<IndexItem>& items, const Extents& shape) {
    Tensor out;
    expect_ok(gather_at(x, items, out));
    EXPECT_EQ(shape_list(out), shape);
    return elements<std::int32_t>(out);
  };
  EXPECT_EQ(gather({of(rows), at(0), at(0)}, {2}), (std::vector<std::int32_t>{12, 0}));
  EXPECT_EQ(gather({at(0), of(columns), slice(0, 2)}, {2, 2}), (std::vector<std::int32_t>{8, 9, 8, 9}));
  EXPECT_EQ(gather({kEllipsis, of(columns)}, {2, 3, 2})[1], 2);
  EXPECT_EQ(gather({of(rows), kAll, of(columns)}, {2, 3}), (std::vector<std::int32_t>{15, 19, 23, 2, 6, 10}));
  // Apart from each other they go in front.
  EXPECT_EQ(gather({kAll, of(rows), kNewAxis, of(columns)}, {2, 2, 1}), (std::vector<std::int32_t>{7, 19, 2, 14}));
}

TEST(ArrayKeys, SelectByMask) {
  const Tensor x = counted(Extents{2, 3});
  const Tensor mask = positions({0, 1, 1}, DType::kBool), whole = positions({1, 0, 0, 0, 0, 1}, DType::kBool);
  Tensor square, out;
  expect_ok(make_view(whole, Extents{2, 3}, Extents{3, 1}, 0, square));
  expect_ok(gather_at(x, std::vector{of(square)}, out));
  EXPECT_EQ(elements<std::int32_t>(out), (std::vector<std::int32_t>{0, 5}));
  expect_ok(gather_at(x, std::vector{kAll, of(mask)}, out = Tensor()));
  EXPECT_EQ(elements<std::int32_t>(out), (std::vector<std::int32_t>{1, 2, 4, 5}));
  EXPECT_EQ(gather_at(x, std::vector{of(mask)}, out = Tensor()).issue().code, ErrorCode::kIndex);  // 3 against 2
}

TEST(ArrayKeys, OutOfBoundsAreIndexErrorsBeforeAnythingIsWritten) {
  const Tensor x = counted(Extents{3}), wrong = positions({0, 3});
  Tensor out;
  EXPECT_EQ(gather_at(x, std::vector{of(wrong)}, out).issue().code, ErrorCode::kIndex);
  EXPECT_EQ(assign_at(x, std::vector{of(wrong)}, {nullptr, Scalar::of_int(9)}).issue().code, ErrorCode::kIndex);
  EXPECT_EQ(elements<std::int32_t>(x), (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(Assignments, BroadcastAccumulateAndKeepTheLast) {
  const Tensor x = counted(Extents{4}), twice = positions({1, 1, 3}), values = positions({10, 20, 30});
  expect_ok(assign_at(x, std::vector{of(twice)}, {&values, {}}));
  EXPECT_EQ(elements<std::int32_t>(x), (std::vector<std::int32_t>{0, 20, 2, 30}));
  expect_ok(assign_at(x, std::vector{of(twice)}, {nullptr, Scalar::of_int(1)}, Op::kAdd));
  EXPECT_EQ(elements<std::int32_t>(x), (std::vector<std::int32_t>{0, 22, 2, 31}));
  expect_ok(assign_at(x, std::vector{slice({}, {}, -2)}, {nullptr, Scalar::of_int(-1)}));
  EXPECT_EQ(elements<std::int32_t>(x), (std::vector<std::int32_t>{0, -1, 2, -1}));
}

TEST(Assignments, CombineByExtremesOnTheHost) {
  const Tensor x = counted(Extents{4}), twice = positions({1, 1, -1}), values = positions({-7, 9, 2});
  expect_ok(assign_at(x, std::vector{of(twice)}, {&values, {}}, Op::kMaximum));
  EXPECT_EQ(elements<std::int32_t>(x), (std::vector<std::int32_t>{0, 9, 2, 3}));
  expect_ok(assign_at(x, std::vector{of(twice)}, {&values, {}}, Op::kMinimum));
  EXPECT_EQ(elements<std::int32_t>(x), (std::vector<std::int32_t>{0, -7, 2, 2}));
  expect_ok(assign_at(x, std::vector{slice({}, {}, 2)}, {nullptr, Scalar::of_int(5)}, Op::kAdd));
  EXPECT_EQ(elements<std::int32_t>(x), (std::vector<std::int32_t>{5, -7, 7, 2}));
}

TEST(Assignments, ReadPositionsBeforeTheyAreOverwritten) {
  const Tensor x = positions({2, 0, 1});
  expect_ok(assign_at(x, std::vector{of(x)}, {&x, {}}));
  EXPECT_EQ(elements<std::int64_t>(x), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(Nonzero, GivesTheCoordinatesInCOrder) {
  Tensor x;
  expect_ok(make_view(positions({0, 5, 0, 7, 0, 9}), Extents{2, 3}, Extents{3, 1}, 0, x));
  Tensor coordinates[2];
  expect_ok(nonzero(x, coordinates));
  EXPECT_EQ(elements<std::int64_t>(coordinates[0]), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(elements<std::int64_t>(coordinates[1]), (std::vector<std::int64_t>{1, 0, 2}));
}

}  // namespace
}  // namespace dlbridge::nd
