// xtensor's adaptors and containers.
#include "dlbridge/converters/xtensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::VersionedProducer;

using Types = testing::Types<XTensorView<float, 2>, XTensorView<const double, 3>, XArrayView<float>,
                             XArrayView<const std::int32_t>, xt::xtensor<float, 2>, xt::xarray<double>>;
template <class X>
class XtensorConformance : public testing::Test {};
TYPED_TEST_SUITE(XtensorConformance, Types);
TYPED_TEST(XtensorConformance, BadInput) { test::check_conformance<TypeParam>(); }

Tensor numbered(VersionedProducer& p) {
  auto* data = reinterpret_cast<float*>(p.bytes.data());
  std::iota(data, data + 64, 0.0F);
  return Tensor::take(&p.managed);
}

TEST(Xtensor, SharesEveryLayout) {
  VersionedProducer p({2, 3});
  p.set_strides({-3, -1});
  p.managed.dl_tensor.byte_offset = 20;
  {
    auto held = to<XTensorView<float, 2>>(numbered(p));
    EXPECT_EQ((*held)(0, 0), 5);
    EXPECT_EQ((*held)(1, 2), 0);
    (*held)(1, 2) = 99;
    EXPECT_EQ(reinterpret_cast<float*>(p.bytes.data())[0], 99);
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

// xtensor broadcasts an axis of extent 1 by its stride, which in DLPack may be anything.
TEST(Xtensor, AnAxisOfExtentOneBroadcasts) {
  VersionedProducer p({1, 3});
  p.set_strides({1000000, 1});
  const auto held = to<XArrayView<float>>(numbered(p));
  const xt::xarray<float> sum = *held + xt::zeros<float>({2, 3});
  EXPECT_EQ(sum(1, 2), 2);
}

TEST(Xtensor, ContainersMoveInAndViewsBorrow) {
  xt::xarray<double> a = {{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  const double* data = a.data();
  Tensor t = from(std::move(a));
  EXPECT_EQ(t.dl.data, data);
  EXPECT_EQ((t.view<const double, 2>()(1, 2)), 6);
  const xt::xtensor<double, 2> copy_of = to<xt::xtensor<double, 2>>(t);
  EXPECT_EQ(copy_of(1, 2), 6);
  auto view = to<XTensorView<double, 2>>(t.view<double, 2>());
  const Tensor back = from(borrow(view, std::move(t)));
  EXPECT_EQ(back.dl.data, data);
}

TEST(Xtensor, Documented) {
  test::expect_documented({
      {converter<XTensorView<float, 2>>::capabilities, "T", "N"},
      {converter<XTensorView<const float, 2>>::capabilities, "T", "N"},
      {converter<XArrayView<float>>::capabilities, "T"},
      {converter<XArrayView<const float>>::capabilities, "T"},
      {converter<xt::xtensor<float, 2>>::capabilities, "T", "N"},
      {converter<xt::xarray<float>>::capabilities, "T"},
  });
}

}  // namespace
}  // namespace dlbridge
