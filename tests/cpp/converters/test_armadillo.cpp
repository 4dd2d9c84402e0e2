// Armadillo's matrices, vectors and cubes.
#include "dlbridge/converters/armadillo.h"

#include <gtest/gtest.h>

#include <complex>
#include <numeric>
#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

using Types = testing::Types<arma::Mat<double>, arma::Mat<std::complex<float>>, arma::Col<float>, arma::Row<double>,
                             arma::Cube<float>>;
template <class X>
class ArmadilloConformance : public testing::Test {};
TYPED_TEST_SUITE(ArmadilloConformance, Types);
TYPED_TEST(ArmadilloConformance, BadInput) { test::check_conformance<TypeParam>(); }

TEST(Armadillo, SharesFortranOrder) {
  VersionedProducer p({2, 3});
  auto* data = reinterpret_cast<float*>(p.bytes.data());
  std::iota(data, data + 6, 0.0F);
  p.set_strides({1, 2});
  {
    auto held = to<arma::fmat>(Tensor::take(&p.managed));
    EXPECT_EQ(held->memptr(), data);
    EXPECT_EQ((*held)(1, 2), 5);
    (*held)(0, 1) = 99;
    EXPECT_EQ(data[2], 99);
    EXPECT_THROW(held->resize(3, 3), std::logic_error);
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(Armadillo, TakesCOrderByACopy) {
  VersionedProducer p({2, 3});
  auto* data = reinterpret_cast<float*>(p.bytes.data());
  std::iota(data, data + 6, 0.0F);
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kCopyRefused, {"to<arma::Mat>"}, [&] { return to<arma::fmat>(t.share()), 0; });
  const auto held = to<arma::fmat>(std::move(t), {.copy = copy::if_needed});
  EXPECT_EQ((*held)(1, 0), 3);
  EXPECT_EQ((*held)(0, 2), 2);
}

TEST(Armadillo, MovesInWithoutACopy) {
  arma::mat a(5, 7, arma::fill::zeros);  // more elements than lie inside the object
  a(4, 6) = 3;
  const double* data = a.memptr();
  Tensor t = from(std::move(a));
  EXPECT_EQ(t.dl.data, data);
  EXPECT_EQ((t.view<const double, 2>()(4, 6)), 3);
  EXPECT_EQ(t.dl.strides[1], 5);
  const auto again = to<arma::mat>(std::move(t));
  EXPECT_EQ(again->memptr(), data);
}

TEST(Armadillo, SlicesAreTheLastAxis) {
  arma::cube a(2, 3, 4, arma::fill::zeros);
  a(1, 2, 3) = 7;
  Tensor t = from(std::move(a));
  EXPECT_EQ((t.view<const double, 3>()(1, 2, 3)), 7);
  EXPECT_EQ(t.dl.strides[2], 6);
}

TEST(Armadillo, ConstLendsReadOnly) {
  const arma::vec a{1, 2, 3};
  Tensor t = from(borrow(a, unowned));
  EXPECT_TRUE(t.readonly());
  EXPECT_EQ(t.dl.data, a.memptr());
}

// It would be taken for memory of the tensor's own.
TEST(Armadillo, AnObjectOverForeignMemoryIsRefused) {
  double memory[6] = {};
  arma::mat a(memory, 2, 3, false, true);
  expect_error(ErrorCode::kRefused, {"from<arma::Mat>", "borrow"}, [&] { return from(std::move(a)), 0; });
  EXPECT_EQ(from(borrow(a, unowned)).dl.data, memory);
}

TEST(Armadillo, Documented) {
  test::expect_documented({
      {converter<arma::mat>::capabilities, "T"},
      {converter<arma::vec>::capabilities, "T"},
      {converter<arma::rowvec>::capabilities, "T"},
      {converter<arma::cube>::capabilities, "T"},
  });
}

}  // namespace
}  // namespace dlbridge
