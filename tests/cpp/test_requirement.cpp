// Which strides each rule takes, and what is left of two rules together (requirement.h).
#include "dlbridge/requirement.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dlbridge/tensor_view.h"

namespace dlbridge {
namespace {

alignas(64) char buffer[4096];

struct Case {
  const char* id;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  std::string takes;                  // the initials of the rules that take it: a n p i(tched) c f d
};

class Strides : public testing::TestWithParam<Case> {};

TEST_P(Strides, AreTakenByTheRulesThatSaySo) {
  const Case& c = GetParam();
  Tensor t;
  t.dl.data = buffer + 2048;
  t.set_dtype(info(DType::kFloat32));
  ASSERT_TRUE(build_layout<StrideUnit::kElements>(t, static_cast<std::int64_t>(c.shape.size()), c.shape.data(),
                                                  c.strides.data())
                  .ok());
  const struct {
    char initial;
    stride_rule rule;
  } rules[] = {{'a', stride_rule::any},     {'n', stride_rule::non_negative}, {'p', stride_rule::positive},
               {'i', stride_rule::pitched}, {'c', stride_rule::c_contig},     {'f', stride_rule::f_contig},
               {'d', stride_rule::dense}};
  for (const auto& [initial, rule] : rules) {
    Requirement r;
    r.strides = rule;
    const bool taken = find_violation(t, r) == Violation::kNone;
    EXPECT_EQ(taken, c.takes.find(initial) != std::string::npos) << initial;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , Strides,
    testing::Values(Case{"c_order", {2, 3}, {3, 1}, "anpicd"}, Case{"f_order", {2, 3}, {1, 2}, "anpfd"},
                    Case{"permuted", {2, 3, 4}, {4, 8, 1}, "anpd"}, Case{"padded_rows", {2, 3}, {5, 1}, "anpi"},
                    Case{"every_other", {4}, {2}, "anpi"}, Case{"reversed", {4}, {-1}, "a"},
                    Case{"broadcast", {2, 3}, {0, 1}, "an"},
                    Case{"axes_that_run_into_one_another", {3, 3}, {1, 1}, "anp"},
                    Case{"one_element", {1, 1}, {7, -9}, "anpicfd"}, Case{"no_elements", {0, 3}, {-5, 0}, "anpicfd"}),
    [](const auto& test) { return test.param.id; });

TEST(Requirement, DenseWithAnotherRuleIsWhatHoldsBoth) {
  const auto together = [](stride_rule a, stride_rule b) {
    Requirement x, y;
    x.strides = a, y.strides = b;
    EXPECT_EQ(intersect(x, y).both.strides, intersect(y, x).both.strides);
    return intersect(x, y).both.strides;
  };
  EXPECT_EQ(together(stride_rule::dense, stride_rule::positive), stride_rule::dense);
  EXPECT_EQ(together(stride_rule::dense, stride_rule::pitched), stride_rule::c_contig);
  EXPECT_EQ(together(stride_rule::dense, stride_rule::c_contig), stride_rule::c_contig);
  EXPECT_EQ(together(stride_rule::dense, stride_rule::f_contig), stride_rule::f_contig);
  EXPECT_EQ(together(stride_rule::dense, stride_rule::dense), stride_rule::dense);
}

TEST(Requirement, ImpliesAnotherWhereWhateverMeetsItMeetsThat) {
  using Rows = TensorView<float, 2, c_contig>;
  using Any = TensorView<float, 2>;
  constexpr Requirement kRows = Rows::kRequirement, kAny = Any::kRequirement, kNothing;
  constexpr Requirement kRead = TensorView<const float, 2>::kRequirement;
  constexpr Requirement kOnCuda = TensorView<float, 2, c_contig, on_cuda>::kRequirement;
  Requirement positive, vectors;
  positive.strides = stride_rule::positive;
  vectors.min_rank = vectors.max_rank = 1;
  static_assert(implies(kRows, kRows) && implies(kRows, kAny) && implies(kRows, kNothing) && implies(kAny, kRead));
  EXPECT_TRUE(implies(kRows, positive));
  EXPECT_FALSE(implies(kAny, positive) || implies(kAny, kRows));
  static_assert(!implies(kRead, kAny) && !implies(kNothing, kRows) && !implies(kOnCuda, kRows));
  EXPECT_FALSE(implies(kRows, vectors));
  constexpr Requirement k3 = requirement_of<float, shape<dyn, 3>>(), k4 = requirement_of<float, shape<dyn, 4>>();
  static_assert(implies(k3, k3) && implies(k3, kNothing) && !implies(kRows, k3) && !implies(k3, k4));
}

}  // namespace
}  // namespace dlbridge
