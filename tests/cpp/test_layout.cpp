// The validator (validate.h) and the arithmetic behind it (layout.h).
#include "dlbridge/layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "dlbridge/validate.h"

namespace dlbridge {
namespace {

using Dims = std::vector<std::int64_t>;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

alignas(64) char buffer[256];

Tensor make(void* data = buffer, DLDataType dtype = {kDLFloat, 32, 1}) {
  Tensor t;
  t.dl.data = data;
  t.set_dtype(*find_dtype(dtype));
  return t;
}

Dims shape_of(const Tensor& t) { return {t.dl.shape, t.dl.shape + t.dl.ndim}; }
Dims strides_of(const Tensor& t) { return {t.dl.strides, t.dl.strides + t.dl.ndim}; }

struct Layout {
  const char* id;
  Dims shape;
  std::optional<Dims> strides;  // nullopt: null pointer
  StrideUnit unit;
  Dims want_strides;  // in elements
  std::int64_t want_size;
};

class Accepted : public testing::TestWithParam<Layout> {};

TEST_P(Accepted, GivesShapeStridesAndSize) {
  const Layout& c = GetParam();
  const Dims shape = c.shape;
  const std::optional<Dims> strides = c.strides;
  Tensor t = make();
  const Status status = build_layout(t, static_cast<std::int64_t>(shape.size()), shape.data(),
                                     strides ? strides->data() : nullptr, c.unit);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(shape_of(t), c.shape);
  EXPECT_EQ(strides_of(t), c.want_strides);
  EXPECT_EQ(t.size, c.want_size);
  EXPECT_EQ(t.dl.data, c.want_size == 0 ? nullptr : buffer);
  EXPECT_EQ(shape, c.shape) << "the producer's shape must not change";
  EXPECT_EQ(strides, c.strides) << "the producer's strides must not change";
}
constexpr StrideUnit kElements = StrideUnit::kElements;
constexpr StrideUnit kBytes = StrideUnit::kBytes;
INSTANTIATE_TEST_SUITE_P(
    Layouts, Accepted,
    testing::Values(Layout{"Fault7NullStridesMeanRowMajor", {2, 3, 4}, {}, kElements, {12, 4, 1}, 24},
                    Layout{"Fault8ZeroDim", {}, {}, kElements, {}, 1},
                    Layout{"Fault13Empty", {2, 0, 4}, {}, kElements, {4, 4, 1}, 0},
                    Layout{"EmptyWithWildStridesBecomesRowMajor", {0, 4}, Dims{kMax, kMax}, kElements, {4, 1}, 0},
                    Layout{"Strided", {3, 2}, Dims{8, 2}, kElements, {8, 2}, 6},
                    Layout{"Negative", {3, 2}, Dims{-2, 1}, kElements, {-2, 1}, 6},
                    Layout{"NegativeBytes", {3}, Dims{-4}, kBytes, {-1}, 3},
                    Layout{"Broadcast", {5, 2}, Dims{0, 1}, kElements, {0, 1}, 10},
                    Layout{"ByteStrides", {3, 2}, Dims{8, 4}, kBytes, {2, 1}, 6},
                    Layout{"OddByteStrideOfOneExtentIsReplaced", {1, 2}, Dims{7, 4}, kBytes, {2, 1}, 2},
                    Layout{"WildStrideOfOneExtentIsReplaced", {1, 2}, Dims{kMin, 1}, kElements, {2, 1}, 2},
                    Layout{"StrideOfOneExtentThatOverflowsInBytesIsReplaced", {1}, Dims{kMax / 2}, kElements, {1}, 1},
                    Layout{"OrdinaryStrideOfOneExtentIsKept", {1, 2}, Dims{77, 1}, kElements, {77, 1}, 2},
                    Layout{"NineDims", {1, 1, 1, 1, 1, 1, 1, 1, 2}, {}, kElements, {2, 2, 2, 2, 2, 2, 2, 2, 1}, 2}),
    [](const auto& test) { return std::string(test.param.id); });

struct Broken {
  const char* id;
  Dims shape;
  std::optional<Dims> strides;
  StrideUnit unit;
  ErrorCode want;
  const char* says;
};

class Refused : public testing::TestWithParam<Broken> {};

TEST_P(Refused, WithItsCodeAndAMessageThatNamesIt) {
  const Broken& c = GetParam();
  Tensor t = make();
  const Status status = build_layout(t, static_cast<std::int64_t>(c.shape.size()), c.shape.data(),
                                     c.strides ? c.strides->data() : nullptr, c.unit);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), c.want) << status.message();
  EXPECT_NE(status.message().find(c.says), std::string::npos) << status.message();
}
INSTANTIATE_TEST_SUITE_P(
    Layouts, Refused,
    testing::Values(
        Broken{"Fault10NegativeExtent", {2, -1}, {}, kElements, ErrorCode::kMalformed, "axis 1 is -1"},
        Broken{
            "Fault10MostNegativeExtent", {kMin}, {}, kElements, ErrorCode::kMalformed, "extents must not be negative"},
        Broken{"Fault11ProductOverflows",
               {std::int64_t{1} << 32, std::int64_t{1} << 32},
               {},
               kElements,
               ErrorCode::kOverflow,
               "product of the shape"},
        Broken{"Fault11BytesOverflow", {kMax / 2}, {}, kElements, ErrorCode::kOverflow, "product of the shape"},
        Broken{"Fault12StrideTimesExtentOverflows",
               {3},
               Dims{kMax / 2 + 1},
               kElements,
               ErrorCode::kOverflow,
               "stride times extent"},
        Broken{"Fault12MostNegativeStride", {3}, Dims{kMin}, kElements, ErrorCode::kOverflow, "stride times extent"},
        Broken{"Fault12SumOfAxesOverflows",
               {2, 2},
               Dims{kMax / 2 + 1, kMax / 2 + 1},
               kElements,
               ErrorCode::kOverflow,
               "stride times extent"},
        Broken{"Fault12RowMajorAxisAfterAWildOneOverflows",
               {2, 4},
               Dims{4, 6148914691236517205},
               kElements,
               ErrorCode::kOverflow,
               "stride times extent"},  // 3 strides are 2^64 - 1: any axis more wraps around
        Broken{"Fault12ReachInBytesOverflows",
               {2},
               Dims{kMax / 2},
               kElements,
               ErrorCode::kOverflow,
               "stride times extent"},
        Broken{"ByteStrideNoMultipleOfTheItemsize", {2}, Dims{5}, kBytes, ErrorCode::kRefused, "5 bytes"}),
    [](const auto& test) { return std::string(test.param.id); });

// Shape points nowhere, so reading it would crash.
TEST(Validator, Fault9AbsurdNdimIsRefusedBeforeShapeIsRead) {
  const auto* nowhere = reinterpret_cast<const std::int64_t*>(std::uintptr_t{8});
  for (const std::int64_t ndim :
       {std::int64_t{-1}, std::int64_t{1'000'000'000}, std::int64_t{kMaxDims} + 1, kMin, kMax}) {
    Tensor t = make();
    const Status status = build_layout(t, ndim, nowhere, nowhere, kElements);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kMalformed);
    EXPECT_NE(status.message().find(std::to_string(ndim)), std::string::npos) << status.message();
  }
}

// One byte more than 63 bits can count: with one-byte elements only the "+ 1" overflows (found by fuzz_codec).
TEST(Validator, Fault12OneElementPastTheAddressSpaceIsAnOverflow) {
  const Dims shape{2};
  const Dims strides{kMax};
  Tensor t = make(buffer, {kDLUInt, 8, 1});
  const Status status = build_layout(t, 1, shape.data(), strides.data(), kElements);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kOverflow);
}

TEST(Validator, Fault8NullShapeOfAZeroDimTensorIsFine) {
  Tensor t = make();
  ASSERT_TRUE(build_layout(t, 0, nullptr, nullptr, kElements).ok());
  EXPECT_EQ(t.size, 1);
}

TEST(Validator, Fault13EmptyWithNullDataIsFine) {
  const Dims shape{3, 0};
  Tensor t = make(nullptr);
  ASSERT_TRUE(build_layout(t, 2, shape.data(), nullptr, kElements).ok());
  EXPECT_EQ(t.dl.data, nullptr);
}

TEST(Validator, Fault14NullDataThatIsNotEmptyIsMalformed) {
  const Dims shape{3};
  for (std::int64_t ndim : {0, 1}) {
    Tensor t = make(nullptr);
    const Status status = build_layout(t, ndim, shape.data(), nullptr, kElements);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kMalformed);
  }
}

TEST(Validator, MostDimensionsAreAccepted) {
  const Dims shape(kMaxDims, 1);
  Tensor t = make();
  ASSERT_TRUE(build_layout(t, kMaxDims, shape.data(), nullptr, kElements).ok());
  EXPECT_EQ(t.dl.ndim, kMaxDims);
}

TEST(Alignment, IsThatOfTheScalarComponent) {
  EXPECT_EQ(alignment_of(info(DType::kComplex128)), 8u);
  EXPECT_EQ(alignment_of(info(DType::kFloat64)), 8u);
  EXPECT_EQ(alignment_of(info(DType::kFloat4E2M1FN)), 1u);
  EXPECT_TRUE(is_aligned(make(buffer + 8, {kDLComplex, 128, 1})));
  EXPECT_FALSE(is_aligned(make(buffer + 4, {kDLComplex, 128, 1})));
  EXPECT_FALSE(is_aligned(make(buffer + 2)));
}

// Strided: by elements, on top of what the validator has accepted.
Tensor laid_out(const Dims& shape, const Dims& strides) {
  Tensor t = make();
  EXPECT_TRUE(build_layout(t, static_cast<std::int64_t>(shape.size()), shape.data(), strides.data(), kElements).ok());
  return t;
}

TEST(Contiguity, IgnoresStridesOfExtentsBelowTwo) {
  EXPECT_TRUE(is_c_contiguous(laid_out({2, 3}, {3, 1}).dl));
  EXPECT_FALSE(is_f_contiguous(laid_out({2, 3}, {3, 1}).dl));
  EXPECT_TRUE(is_f_contiguous(laid_out({2, 3}, {1, 2}).dl));
  EXPECT_FALSE(is_c_contiguous(laid_out({2, 3}, {1, 2}).dl));
  EXPECT_TRUE(is_c_contiguous(laid_out({1, 3, 1}, {77, 1, -5}).dl));
  EXPECT_TRUE(is_f_contiguous(laid_out({1, 3, 1}, {77, 1, -5}).dl));
  EXPECT_TRUE(is_c_contiguous(laid_out({0, 3}, {1, 9}).dl));
  EXPECT_TRUE(is_c_contiguous(laid_out({}, {}).dl));
  EXPECT_FALSE(is_c_contiguous(laid_out({3}, {-1}).dl));
}

TEST(StrideSigns, AreSeenOnlyWhereAnIndexCanMove) {
  EXPECT_TRUE(has_negative_stride(laid_out({3}, {-1}).dl));
  EXPECT_FALSE(has_negative_stride(laid_out({1}, {-1}).dl));
  EXPECT_FALSE(has_negative_stride(laid_out({0, 3}, {1, -1}).dl));
  EXPECT_FALSE(has_zero_stride(laid_out({3, 0}, {0, 1}).dl));
  EXPECT_TRUE(has_zero_stride(laid_out({3}, {0}).dl));
  EXPECT_FALSE(has_zero_stride(laid_out({1}, {0}).dl));
}

TEST(ElementSpan, CoversWhatTheTensorTouches) {
  const auto span = [](const Dims& shape, const Dims& strides) {
    const ElementSpan s = element_span(laid_out(shape, strides).dl);
    return Dims{s.low, s.high};
  };
  EXPECT_EQ(span({2, 3}, {3, 1}), (Dims{0, 6}));
  EXPECT_EQ(span({3, 2}, {-2, 1}), (Dims{-4, 2}));
  EXPECT_EQ(span({4}, {0}), (Dims{0, 1}));
  EXPECT_EQ(span({}, {}), (Dims{0, 1}));
  EXPECT_EQ(span({2, 0}, {1, 1}), (Dims{0, 0}));
  EXPECT_EQ(span({5, 0}, {kMax, 1}), (Dims{0, 0}));  // overflowed on the way to the zero (found by fuzz_codec)
}

struct Placed {
  const char* id;
  Dims shape;
  std::optional<Dims> strides;
  StrideUnit unit;
  std::int64_t itemsize, offset, length;
  bool fits;
};

class Memory : public testing::TestWithParam<Placed> {};

TEST_P(Memory, HoldsALayoutOrNot) {
  const Placed& c = GetParam();
  const Status status =
      check_fits_in_memory(static_cast<std::int64_t>(c.shape.size()), c.shape.data(),
                           c.strides ? c.strides->data() : nullptr, c.unit, c.itemsize, c.offset, c.length, "Fix it");
  ASSERT_EQ(status.ok(), c.fits);
  if (!c.fits) {
    EXPECT_EQ(status.code(), ErrorCode::kMalformed);
  }
}
constexpr std::int64_t k2To61 = std::int64_t{1} << 61;
INSTANTIATE_TEST_SUITE_P(
    Layouts, Memory,
    testing::Values(Placed{"Exactly", {2, 3}, {}, kElements, 4, 0, 24, true},
                    Placed{"OneByteShort", {2, 3}, {}, kElements, 4, 0, 23, false},
                    Placed{"BehindAnOffset", {2, 3}, {}, kElements, 4, 8, 32, true},
                    Placed{"OffsetTooFar", {2, 3}, {}, kElements, 4, 9, 32, false},
                    Placed{"NegativeOffset", {2}, {}, kElements, 4, -1, 32, false},
                    Placed{"ZeroDim", {}, {}, kElements, 8, 0, 8, true},
                    Placed{"ZeroDimTooLarge", {}, {}, kElements, 8, 0, 7, false},
                    Placed{"ByteStrides", {3}, Dims{5}, kBytes, 4, 0, 14, true},
                    Placed{"ByteStridesTooFar", {3}, Dims{5}, kBytes, 4, 0, 13, false},
                    Placed{"NegativeStrideFromTheEnd", {3}, Dims{-4}, kBytes, 4, 8, 12, true},
                    Placed{"NegativeStrideBeforeTheStart", {3}, Dims{-4}, kBytes, 4, 7, 12, false},
                    Placed{"BroadcastNeedsOneElement", {1000}, Dims{0}, kBytes, 4, 0, 4, true},
                    Placed{"StrideOfOneExtentIsNeverUsed", {1, 2}, Dims{kMin, 1}, kElements, 4, 0, 8, true},
                    Placed{"EmptyNeedsNothing", {0, 4}, Dims{kMax, kMax}, kElements, 8, 0, 0, true},
                    Placed{"EmptyBehindTheEnd", {0}, {}, kElements, 8, 1, 0, false},
                    Placed{"ByteStrideWrapsAround", {9}, Dims{k2To61}, kBytes, 4, 0, 64, false},
                    Placed{"ElementStrideWrapsAround", {3}, Dims{k2To61}, kElements, 8, 0, 64, false},
                    Placed{"AxesCancelModulo64Bits", {5, 5}, Dims{k2To61, k2To61}, kBytes, 4, 0, 64, false},
                    Placed{"MostNegativeStride", {2}, Dims{kMin}, kBytes, 4, 0, 64, false},
                    Placed{"MostNegativeStrideWrapsToZero", {3}, Dims{kMin}, kBytes, 4, 0, 64, false},
                    Placed{"DenseSizeWrapsAround", {k2To61, 8}, {}, kElements, 4, 0, 64, false},
                    Placed{"OffsetWrapsAround", {2}, {}, kElements, 4, kMax, 64, false},
                    Placed{"NegativeExtent", {-1}, {}, kElements, 4, 0, 64, false}),
    [](const auto& test) { return std::string(test.param.id); });

TEST(FillCStrides, CountsZeroExtentsAsOne) {
  Tensor t = laid_out({2, 0, 3}, {0, 0, 0});
  fill_c_strides(t.dl);
  EXPECT_EQ(strides_of(t), (Dims{3, 3, 1}));
}

TEST(TensorBytes, PackedSubbyteTypesShareBytesAndPaddedOnesDoNot) {
  Tensor t = make(buffer, {kDLFloat4_e2m1fn, 4, 1});
  const Dims shape{5};
  ASSERT_TRUE(build_layout(t, 1, shape.data(), nullptr, kElements).ok());
  EXPECT_EQ(t.nbytes(), 3);
  t.flags = kFlagPadded;
  EXPECT_EQ(t.nbytes(), 5);
  t.flags = 0;
  t.size = kMax;  // times four bits this leaves 64 bits
  EXPECT_EQ(t.nbytes(), kMax / 2 + 1);
}

}  // namespace
}  // namespace dlbridge
