// Making arrays, and views of them.
#include "ndarray/core/array.h"

#include "ndarray/core/copy.h"
#include "ndarray/core/fill.h"
#include "ndarray/core/views.h"
#include "tests/cpp/nd/arrays.h"

namespace dlbridge::nd {
namespace {

using namespace testing_arrays;

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

Tensor counted(Dims shape, Order order = Order::kC) {
  const Tensor c = dense(DType::kInt32, shape);
  fill_iota<std::int32_t>(c);
  Tensor out;
  expect_ok(copy_as(c, DType::kInt32, order == Order::kC ? CopyOrder::kC : CopyOrder::kF, out));
  return out;
}

TEST(MakeArray, LaysItsAxesOutAsAsked) {
  const std::int64_t shape[] = {2, 1, 3};
  EXPECT_EQ(stride_list(dense(DType::kInt8, shape)), (Extents{3, 3, 1}));
  EXPECT_EQ(stride_list(dense(DType::kInt8, shape, Order::kF)), (Extents{1, 2, 2}));
  const std::int8_t axes[] = {1, 2, 0};
  Tensor out;
  expect_ok(make_array_as(out, DType::kInt8, shape, axes, {kDLCPU, 0}));
  EXPECT_EQ(stride_list(out), (Extents{3, 1, 1}));
  EXPECT_TRUE(is_dense(out, axes));
  EXPECT_TRUE(owns_memory(out));
}

struct SizeCase {
  const char* id;
  Extents shape;
  ErrorCode code;
};
class RefusedShapes : public testing::TestWithParam<SizeCase> {};
TEST_P(RefusedShapes, HaveAReason) {
  Tensor out;
  const Status status = make_array(out, DType::kFloat64, GetParam().shape, {kDLCPU, 0});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.issue().code, GetParam().code);
}
INSTANTIATE_TEST_SUITE_P(Shapes, RefusedShapes,
                         testing::Values(SizeCase{"negative", {2, -1}, ErrorCode::kMalformed},
                                         SizeCase{"too_many_elements", {kHuge, 4}, ErrorCode::kOverflow},
                                         SizeCase{"too_many_bytes", {kHuge}, ErrorCode::kOverflow},
                                         SizeCase{
                                             "too_many_bytes_beside_an_empty_axis", {0, kHuge}, ErrorCode::kOverflow},
                                         SizeCase{"too_many_axes", Extents(65, 1), ErrorCode::kMalformed}),
                         [](const auto& test) { return std::string(test.param.id); });

struct ReshapeCase {
  const char* id;
  Extents shape, strides, wanted;
  Order order;
  bool view;
  Extents result;  // strides
};
class Reshapes : public testing::TestWithParam<ReshapeCase> {};
TEST_P(Reshapes, AreViewsWhereTheStridesAllowThem) {
  const ReshapeCase& c = GetParam();
  const Tensor t = strided(DType::kInt32, c.shape, c.strides);
  Extents shape = c.wanted;
  Tensor out;
  expect_ok(reshape(t, shape, c.order, std::nullopt, out));
  EXPECT_EQ(out.dl.data == t.dl.data && storage_of(out) == storage_of(t), c.view);
  EXPECT_EQ(stride_list(out), c.result);
  const Status never = reshape(t, shape, c.order, false, out = Tensor());
  EXPECT_EQ(never.ok(), c.view);
  if (!c.view) {
    EXPECT_EQ(never.issue().code, ErrorCode::kCopyRefused);
  }
  expect_ok(reshape(t, shape, c.order, true, out = Tensor()));
  EXPECT_NE(storage_of(out), storage_of(t));
}
INSTANTIATE_TEST_SUITE_P(
    Layouts, Reshapes,
    testing::Values(ReshapeCase{"dense", {2, 6}, {6, 1}, {3, 4}, Order::kC, true, {4, 1}},
                    ReshapeCase{"inferred", {2, 6}, {6, 1}, {4, -1}, Order::kC, true, {3, 1}},
                    ReshapeCase{
                        "split_axis_of_a_pitched_array", {3, 4}, {10, 1}, {3, 2, 2}, Order::kC, true, {10, 2, 1}},
                    ReshapeCase{"joined_axes_with_gaps", {3, 4}, {10, 1}, {12}, Order::kC, false, {1}},
                    ReshapeCase{"f_order_of_an_f_array", {2, 6}, {1, 2}, {4, 3}, Order::kF, true, {1, 4}},
                    ReshapeCase{"c_order_of_an_f_array", {2, 6}, {1, 2}, {12}, Order::kC, false, {1}},
                    ReshapeCase{"ones_added", {4}, {2}, {1, 4, 1}, Order::kC, true, {8, 2, 1}},
                    ReshapeCase{"backwards", {6}, {-1}, {2, 3}, Order::kC, true, {-3, -1}},
                    ReshapeCase{"empty", {0, 3}, {3, 1}, {5, 0}, Order::kC, true, {1, 1}}),
    [](const auto& test) { return std::string(test.param.id); });

TEST(Reshape, RefusesAnotherNumberOfElements) {
  const Tensor t = counted(Extents{2, 3});
  for (Extents shape : {Extents{4}, {-1, -1}, {-1, 4}, {-2, 3}, {0, -1}, {kHuge, kHuge, 4}}) {
    Tensor out;
    EXPECT_FALSE(reshape(t, shape, Order::kC, std::nullopt, out).ok()) << text(shape);
  }
}

TEST(Flatten, GivesADenseAxisInEachOrder) {
  const Tensor c = counted(Extents{2, 3}), f = counted(Extents{2, 3}, Order::kF);
  const auto flat = [](const Tensor& t, CopyOrder order, bool copy, bool is_view) {
    Tensor out;
    expect_ok(flatten(t, order, copy, out));
    EXPECT_EQ(storage_of(out) == storage_of(t), is_view);
    EXPECT_TRUE(is_c_contiguous(out));
    return elements<std::int32_t>(out);
  };
  const std::vector<std::int32_t> rows{0, 1, 2, 3, 4, 5}, columns{0, 3, 1, 4, 2, 5};
  EXPECT_EQ(flat(c, CopyOrder::kC, false, true), rows);
  EXPECT_EQ(flat(c, CopyOrder::kC, true, false), rows);
  EXPECT_EQ(flat(c, CopyOrder::kF, false, false), columns);
  EXPECT_EQ(flat(f, CopyOrder::kC, false, false), rows);
  EXPECT_EQ(flat(f, CopyOrder::kKeep, false, true), columns);
  const std::int64_t three[] = {3}, two[] = {2};
  Tensor gaps;
  expect_ok(make_view(c, three, two, 0, gaps));
  EXPECT_EQ(flat(gaps, CopyOrder::kC, false, false), (std::vector<std::int32_t>{0, 2, 4}));
}

TEST(Views, PermuteReverseAndSqueeze) {
  const Tensor t = counted(Extents{2, 1, 3});
  Tensor out;
  expect_ok(permute(t, Extents{-1, 0, 1}, out));
  EXPECT_EQ(shape_list(out), (Extents{3, 2, 1}));
  EXPECT_EQ(stride_list(out), (Extents{1, 3, 3}));
  for (const Extents& axes : {Extents{0, 1}, {0, 1, 1}, {0, 1, 3}, {0, 1, -3}})
    EXPECT_FALSE(permute(t, axes, out = Tensor()).ok()) << text(axes);
  expect_ok(reverse_axes(t, out = Tensor()));
  EXPECT_EQ(stride_list(out), (Extents{1, 3, 3}));
  expect_ok(squeeze(t, 0b111, false, out = Tensor()));
  EXPECT_EQ(shape_list(out), (Extents{2, 3}));
  expect_ok(squeeze(t, 0b010, true, out = Tensor()));
  EXPECT_FALSE(squeeze(t, 0b001, true, out = Tensor()).ok());
}

TEST(Views, BroadcastIsReadOnlyWhereAnElementRepeats) {
  const Tensor t = counted(Extents{1, 3});
  Tensor out;
  expect_ok(broadcast_view(t, Extents{2, 2, 3}, out));
  EXPECT_EQ(stride_list(out), (Extents{0, 0, 1}));
  EXPECT_TRUE(out.readonly());
  expect_ok(broadcast_view(t, Extents{1, 3}, out = Tensor()));
  EXPECT_FALSE(out.readonly());
  EXPECT_FALSE(broadcast_view(t, Extents{3}, out = Tensor()).ok());
  EXPECT_FALSE(broadcast_view(t, Extents{1, 4}, out = Tensor()).ok());
}

TEST(Views, AsAnotherDtypeNeedWholeElements) {
  const Tensor t = counted(Extents{2, 4});
  Tensor out;
  expect_ok(view_as(t, DType::kInt64, out));
  EXPECT_EQ(shape_list(out), (Extents{2, 2}));
  EXPECT_EQ(stride_list(out), (Extents{2, 1}));
  expect_ok(view_as(t, DType::kInt16, out = Tensor()));
  EXPECT_EQ(shape_list(out), (Extents{2, 8}));
  EXPECT_FALSE(view_as(counted(Extents{2, 3}), DType::kInt64, out = Tensor()).ok());
  EXPECT_FALSE(view_as(counted(Extents{2, 4}, Order::kF), DType::kInt64, out = Tensor()).ok());
}

struct BoundCase {
  const char* id;
  std::int64_t offset;
  Extents shape, stride_bytes;
  bool fits;
};
class StridedViews : public testing::TestWithParam<BoundCase> {};
TEST_P(StridedViews, StayInsideTheMemory) {  // of twelve int32
  const Tensor t = counted(Extents{3, 4});
  Tensor out;
  EXPECT_EQ(strided_view(t, GetParam().offset, DType::kInt32, GetParam().shape, GetParam().stride_bytes, out).ok(),
            GetParam().fits);
}
INSTANTIATE_TEST_SUITE_P(
    Bounds, StridedViews,
    testing::Values(BoundCase{"all", 0, {12}, {4}, true}, BoundCase{"past", 0, {13}, {4}, false},
                    BoundCase{"last", 44, {1}, {4}, true}, BoundCase{"behind", 48, {1}, {4}, false},
                    BoundCase{"before", -4, {1}, {4}, false}, BoundCase{"backwards", 44, {12}, {-4}, true},
                    BoundCase{"backwards_past", 40, {12}, {-4}, false},
                    BoundCase{"overlapping", 0, {5, 8}, {4, 4}, true}, BoundCase{"no_multiple", 0, {2}, {2}, false},
                    BoundCase{"empty_anywhere", 0, {0, 99}, {4, 4}, true},
                    BoundCase{"one_stride_too_few", 0, {2, 2}, {4}, false},
                    BoundCase{"offset_leaves_63_bits", INT64_MAX, {1}, {4}, false}),
    [](const auto& test) { return std::string(test.param.id); });

TEST(Fill, RangesAndScalars) {
  const Tensor five = dense(DType::kFloat64, Extents{5});
  const Scalar stop = Scalar::of_float(1);
  expect_ok(fill_range(five, Scalar::of_float(0), Scalar::of_float(0.25), &stop));
  EXPECT_EQ(elements<double>(five), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_FALSE(fill_range(strided(DType::kFloat64, Extents{3}, Extents{2}), stop, stop, nullptr).ok());
  Tensor out;
  const Scalar numbers[] = {Scalar::of_bool(true), Scalar::of_int(-2), Scalar::of_float(0.5)};
  expect_ok(make_from<Scalar>(out, numbers, std::nullopt, Extents{3}));
  EXPECT_EQ(dtype_of(out), DType::kFloat64);
  EXPECT_EQ(elements<double>(out), (std::vector<double>{1, -2, 0.5}));
  EXPECT_FALSE(make_from<Scalar>(out = Tensor(), numbers, DType::kUInt8, Extents{3}).ok());
  expect_ok(make_from<Scalar>(out = Tensor(), {}, std::nullopt, Extents{0}));
  EXPECT_EQ(dtype_of(out), kDefaultFloat);
}

TEST(Copy, IntoAnArrayAsksForTheCast) {
  const Tensor target = dense(DType::kInt32, Extents{2, 2}), row = dense(DType::kFloat64, Extents{2});
  fill_iota<double>(row, 7);
  EXPECT_FALSE(copy_into(target, {&row, {}}, Casting::kSameKind).ok());
  expect_ok(copy_into(target, {&row, {}}, Casting::kUnsafe));
  EXPECT_EQ(elements<std::int32_t>(target), (std::vector<std::int32_t>{7, 8, 7, 8}));
  Scalar first;
  expect_ok(read_element(target, first));
  EXPECT_EQ(first.i, 7);
}

}  // namespace
}  // namespace dlbridge::nd
