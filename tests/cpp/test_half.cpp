// float16 and bfloat16: every value there is, and the rounding of those that there are not.
#include "dlbridge/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <ios>
#include <limits>
#include <type_traits>
#include <vector>

#include "dlbridge/converters/std.h"

namespace dlbridge {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
struct Format;
template <>
struct Format<float16> {
  static constexpr int kPrecision = 11, kSmallest = -24;  // bits, and the exponent of the smallest number
  static constexpr double kLargest = 65504;
};
template <>
struct Format<bfloat16> {
  static constexpr int kPrecision = 8, kSmallest = -133;
  static constexpr double kLargest = 0x1.fep127;
};

template <class T>
class Half : public testing::Test {
 protected:
  static T of(unsigned bits) { return T::from_bits(static_cast<std::uint16_t>(bits)); }
  // Rounded by arithmetic alone: scaled so that the last bit is 1, and rounded by the machine.
  static double rounded(double x) {
    if (std::isnan(x) || std::isinf(x) || x == 0) return x;
    const int last = std::max(std::ilogb(x) - Format<T>::kPrecision + 1, Format<T>::kSmallest);
    const double nearest = std::ldexp(std::nearbyint(std::ldexp(x, -last)), last);
    return std::abs(nearest) > Format<T>::kLargest ? std::copysign(kInf, x) : nearest;
  }
  static void expect_rounded(double x) {
    const float got = T(x);
    EXPECT_TRUE(got == rounded(x) || (std::isnan(got) && std::isnan(x))) << std::hexfloat << x << " became " << got;
    EXPECT_EQ(std::signbit(got), std::signbit(x));
  }
};
using Halves = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, EveryValueIsAFloatAndComesBackAsItWas) {
  for (unsigned bits = 0; bits < 1U << 16; ++bits) {
    const float value = this->of(bits);
    const TypeParam back(value);
    const unsigned quiet = std::isnan(value) ? 1U << (Format<TypeParam>::kPrecision - 2) : 0;
    EXPECT_EQ(back.bits, bits | quiet);
  }
}

TYPED_TEST(Half, NumbersBetweenTwoValuesAreRoundedToTheNearestAndTiesToEven) {
  for (unsigned bits = 0; this->of(bits + 1) < std::numeric_limits<float>::infinity(); ++bits) {
    const double low = this->of(bits), high = this->of(bits + 1), middle = low + (high - low) / 2;
    for (const double x : {low, middle, std::nextafter(middle, low), std::nextafter(middle, high)}) {
      this->expect_rounded(x);
      this->expect_rounded(-x);
    }
    for (const float x : {static_cast<float>(middle), std::nextafter(static_cast<float>(middle), 0.0F)})
      EXPECT_EQ(static_cast<float>(TypeParam(x)), this->rounded(x));
  }
}

TYPED_TEST(Half, TheEndsAreThoseOfIeee) {
  const double largest = Format<TypeParam>::kLargest;
  const double next = std::ldexp(1.0, std::ilogb(largest) + 1), tie = largest + (next - largest) / 2;
  for (const double x : {kInf, kNan, 0.0, largest, tie, std::nextafter(tie, 0), 1e300, 1e-300, 0x1p-25, 0x1.8p-25}) {
    this->expect_rounded(x);
    this->expect_rounded(-x);
  }
  EXPECT_TRUE(std::isinf(static_cast<float>(TypeParam(tie))));
  EXPECT_EQ(static_cast<float>(TypeParam(std::nextafter(tie, 0))), largest);
  EXPECT_EQ(static_cast<float>(TypeParam(7)), 7);
  EXPECT_EQ(static_cast<float>(TypeParam(std::int64_t{-3})), -3);
  EXPECT_EQ(static_cast<float>(TypeParam(true)), 1);
}

// A signalling NaN keeps its sign, and what it carries in the bits that there are.
TYPED_TEST(Half, NanStaysNan) {
  for (const std::uint32_t bits : {0x7f800001U, 0xff800001U, 0x7fc00000U, 0xffffffffU}) {
    const TypeParam half(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(static_cast<float>(half)));
    EXPECT_EQ(half.bits >> 15, bits >> 31);
  }
  static_assert(TypeParam(std::numeric_limits<float>::quiet_NaN()).bits != 0);
}

TYPED_TEST(Half, IsAPlainValueOfTwoBytes) {
  static_assert(sizeof(TypeParam) == 2 && alignof(TypeParam) == 2);
  static_assert(std::is_trivial_v<TypeParam> && std::is_standard_layout_v<TypeParam>);
  static_assert(!std::is_convertible_v<float, TypeParam>, "precision is lost only where it is said");
  static_assert(static_cast<float>(TypeParam(1.5)) == 1.5F);
  static_assert(TypeParam(2) * TypeParam(3) == 6.0F);
}

TYPED_TEST(Half, GoesFromAVectorToAViewAndBack) {
  std::vector<TypeParam> values{TypeParam(1), TypeParam(-2.5)};
  const auto* data = values.data();
  Tensor t = from(std::move(values));
  EXPECT_EQ(t.dl.data, data);
  EXPECT_TRUE(t.dtype() == dtype_of_v<TypeParam>);
  const auto view = t.view<TypeParam, 1>();
  view(0) = TypeParam(view(0) + view(1));
  float sum = 0;
  for (const TypeParam x : view) sum += x;
  EXPECT_EQ(sum, -4);
  EXPECT_EQ(static_cast<float>(to<std::vector<TypeParam>>(t)[0]), -1.5F);
}

#if defined(__FLT16_MANT_DIG__)
TEST(Float16, RoundsAsTheCompilersOwn) {
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4099) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    EXPECT_EQ(float16(x).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(x))) << std::hexfloat << x;
  }
}
#endif

TEST(BFloat16, IsTheUpperHalfOfAFloat) {
  for (unsigned bits = 0; bits < 1U << 16; ++bits)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(bfloat16::from_bits(static_cast<std::uint16_t>(bits)))),
              bits << 16);
}

}  // namespace
}  // namespace dlbridge
