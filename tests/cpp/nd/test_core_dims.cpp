// Dims: merging and sorting, contiguity, broadcasting, the order in memory, and the loop made of them.
#include "ndarray/core/dims.h"

#include <limits>

#include "ndarray/core/loop.h"
#include "tests/cpp/nd/arrays.h"

namespace dlbridge::nd {
namespace {

using namespace testing_arrays;

struct MergeCase {
  const char* id;
  Extents shape, a, b;  // innermost first; two operands' strides
  Extents merged, merged_a, merged_b;
};
class Merging : public testing::TestWithParam<MergeCase> {};
TEST_P(Merging, JoinsWhatEveryOperandWalksAsOne) {
  MergeCase c = GetParam();
  std::int64_t* const rows[] = {c.a.data(), c.b.data()};
  const auto n = static_cast<std::size_t>(merge_dims(c.shape.data(), static_cast<int>(c.shape.size()), rows, 2));
  for (Extents* row : {&c.shape, &c.a, &c.b}) row->resize(n);
  EXPECT_EQ(c.shape, c.merged);
  EXPECT_EQ(c.a, c.merged_a);
  EXPECT_EQ(c.b, c.merged_b);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Merging,
    testing::Values(MergeCase{"dense", {4, 3, 2}, {1, 4, 12}, {1, 4, 12}, {24}, {1}, {1}},
                    MergeCase{"ones_dropped", {1, 4, 1}, {9, 1, 7}, {5, 2, 3}, {4}, {1}, {2}},
                    MergeCase{"only_ones", {1, 1}, {1, 1}, {1, 1}, {}, {}, {}},
                    MergeCase{"one_operand_has_gaps", {4, 3}, {1, 4}, {1, 5}, {4, 3}, {1, 4}, {1, 5}},
                    MergeCase{"outer_two_join", {4, 3, 2}, {1, 8, 24}, {1, 4, 12}, {4, 6}, {1, 8}, {1, 4}},
                    MergeCase{"repeated", {4, 3}, {0, 0}, {1, 4}, {12}, {0}, {1}},
                    MergeCase{"repeated_row", {4, 3}, {1, 0}, {1, 4}, {4, 3}, {1, 0}, {1, 4}},
                    MergeCase{"backwards", {4, 3}, {-1, -4}, {1, 4}, {12}, {-1}, {1}}),
    [](const auto& test) { return std::string(test.param.id); });

TEST(Sorting, PutsTheSmallestStepInsideAndKeepsEqualOnes) {
  std::int64_t shape[] = {2, 3, 4, 5}, a[] = {-60, 3, 0, 3}, b[] = {1, 2, 3, 4};
  std::int64_t* const rows[] = {a, b};
  sort_dims(shape, 4, rows, 2, 0);
  EXPECT_EQ(Extents(shape, shape + 4), (Extents{4, 3, 5, 2}));
  EXPECT_EQ(Extents(a, a + 4), (Extents{0, 3, 3, -60}));
  EXPECT_EQ(Extents(b, b + 4), (Extents{3, 2, 4, 1}));
}

struct LayoutCase {
  const char* id;
  Extents shape, strides;
  bool c, f, permuted;
};
class Contiguity : public testing::TestWithParam<LayoutCase> {};
TEST_P(Contiguity, IsToldForEachOrder) {
  const LayoutCase& c = GetParam();
  const Tensor t = strided(DType::kInt16, c.shape, c.strides);
  EXPECT_EQ(is_c_contiguous(t), c.c);
  EXPECT_EQ(is_f_contiguous(t), c.f);
  EXPECT_EQ(is_permuted_dense(t.dl), c.permuted);
}
INSTANTIATE_TEST_SUITE_P(Layouts, Contiguity,
                         testing::Values(LayoutCase{"c", {2, 3}, {3, 1}, true, false, true},
                                         LayoutCase{"f", {2, 3}, {1, 2}, false, true, true},
                                         LayoutCase{"both", {1, 3}, {77, 1}, true, true, true},
                                         LayoutCase{"permuted", {2, 3, 4}, {4, 8, 1}, false, false, true},
                                         LayoutCase{"gaps", {2, 3}, {4, 1}, false, false, false},
                                         LayoutCase{"repeated", {2, 3}, {0, 1}, false, false, false},
                                         LayoutCase{"backwards", {3}, {-1}, false, false, false},
                                         LayoutCase{"no_axes", {}, {}, true, true, true}),
                         [](const auto& test) { return std::string(test.param.id); });

TEST(Broadcasting, TakesTheLargerOfEachPairFromTheLastAxisOn) {
  const Tensor a = dense(DType::kInt8, Extents{3, 1, 5}), b = dense(DType::kInt8, Extents{4, 1}),
               wrong = dense(DType::kInt8, Extents{3, 5});
  const Tensor* const good[] = {&a, nullptr, &b};
  std::int64_t shape[kMaxDims];
  int ndim = 0;
  expect_ok(broadcast_shapes(good, shape, ndim));
  EXPECT_EQ(Extents(shape, shape + ndim), (Extents{3, 4, 5}));
  const Tensor* const bad[] = {&b, &wrong};
  const Status status = broadcast_shapes(bad, shape, ndim);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("(4, 1) (3, 5)"), std::string::npos) << status.message();
}

TEST(MemoryOrder, IsTheInputsOwnAndCWhereTheyDisagree) {
  const std::int64_t shape[] = {2, 3};
  const Tensor c = dense(DType::kInt8, shape), f = dense(DType::kInt8, shape, Order::kF);
  const auto order = [&](std::vector<const Tensor*> inputs) {
    std::int8_t axes[kMaxDims];
    const bool plain = memory_order(inputs, shape, axes);
    EXPECT_EQ(plain, axes[0] == 1);
    return plain ? 'C' : 'F';
  };
  EXPECT_EQ(order({&c}), 'C');
  EXPECT_EQ(order({&f}), 'F');
  EXPECT_EQ(order({&f, nullptr, &f}), 'F');
  const Tensor equal = strided(DType::kInt8, shape, Extents{1, 1});
  EXPECT_EQ(order({&equal}), 'C');
  EXPECT_EQ(order({&c, &f}), 'C');
}

// The loop reaches each element once, whatever the layouts are.
struct LoopCase {
  const char* id;
  Extents shape, out, in;
  int ndim;
  bool contiguous;
};
class Loops : public testing::TestWithParam<LoopCase> {};
TEST_P(Loops, ReachEveryPairOfElements) {
  const LoopCase& c = GetParam();
  const Tensor out = strided(DType::kInt32, c.shape, c.out), in = strided(DType::kInt16, c.shape, c.in);
  const Tensor* const operands[] = {&out, &in};
  ElementwiseArgs args{};
  OuterLoop outer;
  plan_loop(operands, args, outer);
  EXPECT_EQ(args.ndim, c.ndim);
  EXPECT_EQ(args.contiguous, c.contiguous);
  EXPECT_EQ(outer.ndim, 0);
  EXPECT_EQ(args.size, out.size);
  std::vector<std::pair<std::intptr_t, std::intptr_t>> reached, expected;
  for (std::int64_t i = 0; i < args.size; ++i) {
    std::intptr_t at[2] = {reinterpret_cast<std::intptr_t>(args.data[0]),
                           reinterpret_cast<std::intptr_t>(args.data[1])};
    std::int64_t rest = i;
    for (int d = 0; d < args.ndim; ++d, rest /= args.shape[d - 1])
      for (int k = 0; k < 2; ++k) at[k] += rest % args.shape[d] * args.strides[k][d];
    reached.emplace_back(at[0], at[1]);
  }
  for (std::int64_t i = 0; i < out.size; ++i) {
    std::intptr_t at[2] = {reinterpret_cast<std::intptr_t>(out.dl.data), reinterpret_cast<std::intptr_t>(in.dl.data)};
    std::int64_t rest = i;
    for (int d = out.dl.ndim; d-- > 0; rest /= out.dl.shape[d]) {
      at[0] += rest % out.dl.shape[d] * out.dl.strides[d] * 4;
      at[1] += rest % out.dl.shape[d] * in.dl.strides[d] * 2;
    }
    expected.emplace_back(at[0], at[1]);
  }
  std::sort(reached.begin(), reached.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(reached, expected);
}
INSTANTIATE_TEST_SUITE_P(Layouts, Loops,
                         testing::Values(LoopCase{"dense", {3, 4}, {4, 1}, {4, 1}, 1, true},
                                         LoopCase{"both_f", {3, 4}, {1, 3}, {1, 3}, 1, true},
                                         LoopCase{"transposed", {3, 4}, {4, 1}, {1, 3}, 2, false},
                                         LoopCase{"broadcast", {3, 4}, {4, 1}, {0, 1}, 2, false},
                                         LoopCase{"both_backwards", {3, 4}, {-4, -1}, {-4, -1}, 1, true},
                                         LoopCase{"input_backwards", {3, 4}, {4, 1}, {-4, -1}, 1, false},
                                         LoopCase{"every_second", {12}, {2}, {2}, 1, false},
                                         LoopCase{"one_element", {1, 1}, {1, 1}, {1, 1}, 0, true},
                                         LoopCase{"middle_axis_repeated", {2, 3, 4}, {12, 4, 1}, {4, 0, 1}, 3, false}),
                         [](const auto& test) { return std::string(test.param.id); });

TEST(Loop, LeavesDimsBeyondTheKernelsToTheCaller) {
  Extents shape(14, 2), strides(14);
  for (std::size_t k = 14, s = 1; k-- > 0; s *= 3) strides[k] = static_cast<std::int64_t>(s);
  const Tensor in = strided(DType::kInt8, shape, strides), out = dense(DType::kInt8, shape);
  const Tensor* const operands[] = {&out, &in};
  ElementwiseArgs args{};
  OuterLoop outer;
  plan_loop(operands, args, outer);
  EXPECT_EQ(args.ndim, kLoopDims);
  ASSERT_EQ(outer.ndim, 2);
  EXPECT_EQ(outer.strides[0][1], 1 << 13);
  EXPECT_EQ(outer.strides[1][1], strides[0]);
}

}  // namespace
}  // namespace dlbridge::nd
