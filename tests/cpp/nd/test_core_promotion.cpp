// Type promotion against the rule it stands for: the smallest dtype that holds both.
#include "ndarray/core/promotion.h"

#include "ndarray/core/elementwise.h"
#include "tests/cpp/nd/arrays.h"

namespace dlbridge::nd {
namespace {

using enum DType;

std::string label(DType t) { return std::string(info(t).name); }

std::string name_of(Op op) { return std::string(info(op).name); }

std::vector<DType> all() {
  std::vector<DType> out;
  for (std::size_t k = 0; k < detail::kTableSize; ++k)
    if (is_supported(static_cast<DType>(k))) out.push_back(static_cast<DType>(k));
  return out;
}

TEST(Promotion, IsCommutativeAndKeepsEachDtype) {
  ASSERT_EQ(all().size(), 15u);
  for (const DType a : all()) {
    EXPECT_EQ(promote(a, a), a);
    EXPECT_EQ(promote(a, kBool), a);
    for (const DType b : all()) EXPECT_EQ(promote(a, b), promote(b, a)) << info(a).name << " " << info(b).name;
  }
}

struct Pair {
  DType a, b, promoted;
};
class Promotions : public testing::TestWithParam<Pair> {};
TEST_P(Promotions, AreNumPys) { EXPECT_EQ(promote(GetParam().a, GetParam().b), GetParam().promoted); }
INSTANTIATE_TEST_SUITE_P(Pairs, Promotions,
                         testing::Values(Pair{kInt8, kUInt8, kInt16}, Pair{kInt8, kUInt16, kInt32},
                                         Pair{kInt32, kUInt32, kInt64}, Pair{kInt64, kUInt64, kFloat64},
                                         Pair{kInt64, kUInt8, kInt64}, Pair{kFloat16, kInt8, kFloat16},
                                         Pair{kFloat16, kUInt16, kFloat32}, Pair{kFloat32, kInt16, kFloat32},
                                         Pair{kFloat32, kInt32, kFloat64}, Pair{kBFloat16, kFloat16, kFloat32},
                                         Pair{kBFloat16, kUInt8, kBFloat16}, Pair{kComplex64, kFloat64, kComplex128},
                                         Pair{kComplex64, kInt64, kComplex128}, Pair{kComplex64, kFloat32, kComplex64}),
                         [](const auto& test) { return label(test.param.a) + "_" + label(test.param.b); });

TEST(Promotion, GivesAPythonScalarTheArraysWidth) {
  using S = ScalarKind;
  EXPECT_EQ(promote(kInt8, S::kInt), kInt8);
  EXPECT_EQ(promote(kBool, S::kInt), kInt64);
  EXPECT_EQ(promote(kInt8, S::kFloat), kFloat64);
  EXPECT_EQ(promote(kFloat16, S::kFloat), kFloat16);
  EXPECT_EQ(promote(kFloat32, S::kComplex), kComplex64);
  EXPECT_EQ(promote(kInt64, S::kComplex), kComplex128);
}

// What each rule of the table computes in, and returns.
struct Rule {
  Op op;
  DType given, compute, result;
};
class Rules : public testing::TestWithParam<Rule> {};
TEST_P(Rules, ChooseTheTypesOfTheKernel) {
  KernelTypes types;
  ASSERT_TRUE(resolve(info(GetParam().op), GetParam().given, types));
  EXPECT_EQ(types.compute, GetParam().compute);
  EXPECT_EQ(types.result, GetParam().result);
}
INSTANTIATE_TEST_SUITE_P(
    Table, Rules,
    testing::Values(Rule{Op::kAdd, kBool, kBool, kBool}, Rule{Op::kSquare, kBool, kInt8, kInt8},
                    Rule{Op::kExp, kInt8, kFloat16, kFloat16}, Rule{Op::kExp, kUInt16, kFloat32, kFloat32},
                    Rule{Op::kExp, kInt64, kFloat64, kFloat64}, Rule{Op::kDivide, kInt8, kFloat64, kFloat64},
                    Rule{Op::kLess, kFloat32, kFloat32, kBool}, Rule{Op::kAbsolute, kComplex128, kComplex128, kFloat64},
                    Rule{Op::kAbsolute, kInt16, kInt16, kInt16}),
    [](const auto& test) { return name_of(test.param.op) + "_" + label(test.param.given); });

TEST(Promotion, HasNoLoopOutsideTheTable) {
  KernelTypes types;
  EXPECT_FALSE(resolve(info(Op::kFloor), kComplex64, types));
  EXPECT_FALSE(resolve(info(Op::kInvert), kFloat32, types));
}

TEST(Casting, FollowsNumPysRules) {
  EXPECT_TRUE(can_cast(kInt32, kFloat64, Casting::kSafe));
  EXPECT_FALSE(can_cast(kInt32, kFloat32, Casting::kSafe));
  EXPECT_TRUE(can_cast(kFloat64, kFloat16, Casting::kSameKind));
  EXPECT_FALSE(can_cast(kFloat64, kInt64, Casting::kSameKind));
  EXPECT_FALSE(can_cast(kComplex64, kFloat64, Casting::kSameKind));
  EXPECT_FALSE(can_cast(kInt32, kInt64, Casting::kEquiv));
  EXPECT_TRUE(can_cast(kComplex64, kBool, Casting::kUnsafe));
}

}  // namespace
}  // namespace dlbridge::nd
