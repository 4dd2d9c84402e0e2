// The loops of generated kernels: the variant that a call takes, and the words that its kernel reads.
#include "ndarray/core/generated_loop.h"

#include "tests/cpp/nd/arrays.h"

namespace dlbridge::nd {
namespace {

using namespace testing_arrays;

struct Case {
  const char* id;
  Extents shape, strides;  // of the input, which has the output's shape; in elements
  LoopTraits traits;
  int ndim, vector;
  const char* walks;
};

const Case kCases[] = {
    {"dense", {4, 6}, {6, 1}, {}, 1, 4, "dd"},
    {"odd_number_of_elements", {3, 5}, {5, 1}, {}, 1, 4, "dd"},
    {"rows_with_a_pitch", {4, 8}, {12, 1}, {}, 2, 4, "dd"},
    {"rows_that_no_vector_divides", {4, 6}, {12, 1}, {}, 2, 2, "dd"},
    {"every_second", {12}, {2}, {}, 1, 1, "sd"},
    {"repeated_column", {4, 8}, {1, 0}, {}, 2, 4, "rd"},
    {"repeated_row", {4, 8}, {0, 1}, {}, 2, 4, "dd"},
    {"transposed", {4, 8}, {1, 4}, {}, 2, 1, "sd"},
    {"one_element", {1, 1}, {7, 7}, {}, 1, 1, "rr"},
};

class GeneratedLoops : public testing::TestWithParam<Case> {};

TEST_P(GeneratedLoops, TakeTheVariantOfTheirLayout) {
  const Case& c = GetParam();
  const Tensor in = strided(DType::kFloat32, c.shape, c.strides), out = dense(DType::kFloat32, c.shape);
  const KernelOperand operands[] = {{&in}, {&out}};
  GeneratedLoop loop;
  plan_generated_loop(operands, c.shape, c.traits, loop);
  EXPECT_EQ(loop.variant.ndim, c.ndim);
  EXPECT_EQ(loop.variant.vector, c.vector);
  EXPECT_EQ(loop.variant.walks, c.walks);
  EXPECT_EQ(loop.size, out.size);
  EXPECT_EQ(loop.vectors, out.size / c.vector);
  EXPECT_FALSE(loop.variant.wide);
  ASSERT_EQ(loop.addresses.size(), 2u);
  EXPECT_EQ(loop.words[loop.addresses[0]], reinterpret_cast<std::uint64_t>(in.dl.data));
  EXPECT_EQ(loop.words[loop.addresses[1]], reinterpret_cast<std::uint64_t>(out.dl.data));
}

INSTANTIATE_TEST_SUITE_P(Layouts, GeneratedLoops, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.id); });

TEST(GeneratedLoop, FollowsTheOutputUnlessTheKernelAsksForItsIndex) {
  const std::int64_t shape[] = {4, 8};
  const Tensor in = dense(DType::kFloat32, shape, Order::kF), out = dense(DType::kFloat32, shape, Order::kF);
  const KernelOperand operands[] = {{&in}, {&out}};
  GeneratedLoop free_order, c_order;
  plan_generated_loop(operands, shape, {}, free_order);
  plan_generated_loop(operands, shape, {true, false}, c_order);
  EXPECT_EQ(free_order.variant.ndim, 1);
  EXPECT_EQ(c_order.variant.ndim, 2);
}

TEST(GeneratedLoop, TakesVectorsThatEndWithTheRow) {
  const std::int64_t shape[] = {4, 6}, strides[] = {8, 1};  // each row begins at a multiple of 16 bytes
  const Tensor in = strided(DType::kFloat32, shape, strides), out = strided(DType::kFloat32, shape, strides);
  const KernelOperand operands[] = {{&in}, {&out}};
  GeneratedLoop loop;
  plan_generated_loop(operands, shape, {}, loop);
  EXPECT_EQ(loop.variant.vector, 2);
}

TEST(GeneratedLoop, TurnsDimensionsThatTheOutputWalksBackwards) {
  const std::int64_t shape[] = {12}, strides[] = {-1};
  const Tensor in = strided(DType::kFloat32, shape, strides), out = strided(DType::kFloat32, shape, strides);
  const KernelOperand operands[] = {{&in}, {&out}};
  GeneratedLoop loop;
  plan_generated_loop(operands, shape, {}, loop);
  EXPECT_EQ(loop.variant.walks, "dd");
  EXPECT_EQ(loop.words[loop.addresses[1]], reinterpret_cast<std::uint64_t>(out.dl.data) - 11 * sizeof(float));
}

// Counts, addresses, the scalar (two words), the raw array (address, size, extents, strides), one divisor (two words),
// strides of the two loops' arrays, the index's extents.
TEST(GeneratedLoop, WritesTheWordsInTheOrderOfTheGeneratedCode) {
  const std::int64_t shape[] = {3, 8}, row[] = {0, 1}, raw_shape[] = {5}, raw_strides[] = {2};
  const Tensor in = strided(DType::kFloat32, shape, row), out = dense(DType::kFloat32, shape);
  const Tensor raw = strided(DType::kFloat64, raw_shape, raw_strides);
  const KernelOperand operands[] = {{&in}, {nullptr, false, {{42}}}, {&raw, true}, {&out}};
  GeneratedLoop loop;
  plan_generated_loop(operands, shape, {true, true}, loop);
  const auto address = [](const Tensor& t) { return reinterpret_cast<std::uint64_t>(t.dl.data); };
  ASSERT_EQ(loop.words.size(), 2u + 2 + 2 + 4 + 2 + 4 + 2);
  const std::vector<std::uint64_t> front(loop.words.begin(), loop.words.begin() + 10);
  EXPECT_EQ(front, (std::vector<std::uint64_t>{6, 24, address(in), address(out), 42, 0, address(raw), 5, 5, 16}));
  const std::uint64_t divisor = loop.words[10] & 0xffffffffu, magic = loop.words[10] >> 32, shift = loop.words[11];
  EXPECT_EQ(divisor, 2u);  // vectors of a row
  for (const std::uint64_t n : {0u, 1u, 2u, 5u, 1000001u, 0x7fffffffu})
    EXPECT_EQ((((n * magic) >> 32) + n) >> shift, n / divisor) << n;
  const std::vector<std::uint64_t> back(loop.words.begin() + 12, loop.words.end());
  EXPECT_EQ(back, (std::vector<std::uint64_t>{16, 0, 16, 32, 3, 8}));
  EXPECT_EQ(loop.variant.raw_ndim, std::vector<int>{1});
  EXPECT_EQ(loop.variant.raw_dense, "s");
}

}  // namespace
}  // namespace dlbridge::nd
