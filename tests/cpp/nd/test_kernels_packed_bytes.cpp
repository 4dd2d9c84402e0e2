// Four bytes at once must be what four elements are, for every pair of bytes, in every place of the word.
#include <gtest/gtest.h>

#include "ndarray/kernels/functors/packed_bytes.h"

namespace dlbridge::nd {
namespace {

constexpr std::uint32_t kPlaces = 0x01010101u;
std::uint32_t byte_at(std::uint32_t word, int place) { return word >> 8 * place & 0xffu; }

// Every pair (a, b) beside neighbours that would carry, borrow or leak into them.
template <class Check>
void each_pair(Check check) {
  for (std::uint32_t a = 0; a < 256; ++a)
    for (std::uint32_t b = 0; b < 256; ++b)
      for (const std::uint32_t around : {0x00u, 0x01u, 0x80u, 0xffu})
        for (int place = 0; place < 4; ++place) {
          const std::uint32_t mask = 0xffu << 8 * place;
          const std::uint32_t x = (around * kPlaces & ~mask) | a << 8 * place;
          const std::uint32_t y = (around * kPlaces & ~mask) | b << 8 * place;
          ASSERT_TRUE(check(x, y, place)) << a << " " << b << " beside " << around << " in place " << place;
        }
}

template <Op op, class C>
void expect_binary() {
  using F = OpFn<op, C>;
  each_pair([](std::uint32_t x, std::uint32_t y, int place) {
    const auto a = static_cast<C>(byte_at(x, place)), b = static_cast<C>(byte_at(y, place));
    return byte_at(PackedBytes<F>::apply(x, y), place) == static_cast<std::uint8_t>(F{}(a, b));
  });
}
template <Op op, class C>
void expect_unary() {
  using F = OpFn<op, C>;
  each_pair([](std::uint32_t x, std::uint32_t, int place) {
    return byte_at(PackedBytes<F>::apply(x), place) ==
           static_cast<std::uint8_t>(F{}(static_cast<C>(byte_at(x, place))));
  });
}

TEST(PackedBytes, arithmetic_wraps_within_each_byte) {
  expect_binary<Op::kAdd, std::uint8_t>();
  expect_binary<Op::kSubtract, std::uint8_t>();
  expect_unary<Op::kNegative, std::uint8_t>();
}

TEST(PackedBytes, bitwise_operations_are_those_of_the_element) {
  expect_binary<Op::kBitwiseAnd, std::uint8_t>();
  expect_binary<Op::kBitwiseOr, std::uint8_t>();
  expect_binary<Op::kBitwiseXor, std::uint8_t>();
  expect_unary<Op::kInvert, std::uint8_t>();
}

TEST(PackedBytes, truth_is_one_for_every_byte_that_is_not_zero) {
  expect_binary<Op::kEqual, std::uint8_t>();
  expect_binary<Op::kNotEqual, std::uint8_t>();
  expect_binary<Op::kLogicalAnd, std::uint8_t>();
  expect_binary<Op::kLogicalOr, std::uint8_t>();
  expect_binary<Op::kLogicalXor, std::uint8_t>();
  expect_unary<Op::kLogicalNot, std::uint8_t>();
  expect_binary<Op::kLogicalAnd, bool>();
  expect_binary<Op::kLogicalOr, bool>();
  expect_binary<Op::kLogicalXor, bool>();
  expect_unary<Op::kLogicalNot, bool>();
}

}  // namespace
}  // namespace dlbridge::nd
