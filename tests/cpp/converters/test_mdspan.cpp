// cuda::std::mdspan with GoogleTest. std::mdspan needs libc++, which GoogleTest of the system is not built for:
// std_mdspan.cpp.
#include "dlbridge/converters/mdspan.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

template <class T, class Layout>
using Span2 = ::cuda::std::mdspan<T, ::cuda::std::dextents<std::int64_t, 2>, Layout>;
using Types = testing::Types<Span2<float, ::cuda::std::layout_right>, Span2<const float, ::cuda::std::layout_left>,
                             Span2<float, ::cuda::std::layout_stride>, Span2<const double, ::cuda::std::layout_stride>>;
template <class X>
class MdspanConformance : public testing::Test {};
TYPED_TEST_SUITE(MdspanConformance, Types);
TYPED_TEST(MdspanConformance, BadInput) { test::check_conformance<TypeParam>(); }

TEST(Mdspan, SharesAndGoesBack) {
  VersionedProducer p({2, 3});
  p.set_strides({8, 2});
  Tensor t = Tensor::take(&p.managed);
  auto span = to<Span2<float, ::cuda::std::layout_stride>>(t.view<float, 2>());
  EXPECT_EQ(reinterpret_cast<char*>(&span(1, 2)), p.bytes.data() + 4 * (8 + 4));
  Tensor back = from(borrow(span, std::move(t)));
  EXPECT_EQ(back.dl.strides[0], 8);
  EXPECT_EQ(back.dl.device.device_type, kDLCPU);
}

// layout_stride asks for positive strides; those of axes of extent 1 are anything in DLPack.
TEST(Mdspan, UnusedStridesBecomePositive) {
  VersionedProducer p({2, 1});
  p.set_strides({3, -7});
  const auto held = to<Span2<float, ::cuda::std::layout_stride>>(Tensor::take(&p.managed));
  EXPECT_EQ(held->stride(0), 3);
  EXPECT_EQ(held->stride(1), 1);
}

TEST(Mdspan, StaticExtentsAndSmallIndexTypesAreChecked) {
  VersionedProducer p({2, 3});
  Tensor t = Tensor::take(&p.managed);
  using Fixed = ::cuda::std::mdspan<float, ::cuda::std::extents<int, 2, 4>, ::cuda::std::layout_right>;
  expect_error(ErrorCode::kMalformed, {"extent 4 on axis 1", "(2, 3)"}, [&] { return to<Fixed>(t), 0; });
  VersionedProducer q({200, 2}, {kDLInt, 8, 1});
  using Tiny = ::cuda::std::mdspan<std::int8_t, ::cuda::std::dextents<signed char, 2>, ::cuda::std::layout_right>;
  expect_error(ErrorCode::kOverflow, {"200", "index_type"}, [&] { return to<Tiny>(Tensor::take(&q.managed)), 0; });
  EXPECT_EQ(q.deleted, 1);
}

TEST(Mdspan, DevicePointersPass) {
  VersionedProducer p({2, 3});
  p.managed.dl_tensor.device = {kDLCUDA, 0};
  const auto held = to<Span2<float, ::cuda::std::layout_right>>(Tensor::take(&p.managed));
  EXPECT_EQ(reinterpret_cast<char*>(held->data_handle()), p.bytes.data());
}

TEST(Mdspan, Documented) {
  test::expect_documented({
      {converter<Span2<float, ::cuda::std::layout_stride>>::capabilities, "T", "N"},
  });
}

}  // namespace
}  // namespace dlbridge
