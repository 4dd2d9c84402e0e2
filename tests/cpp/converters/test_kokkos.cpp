// Kokkos Views in host space.
#include "dlbridge/converters/kokkos.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

class KokkosRuntime : public testing::Environment {
 public:
  void SetUp() override { Kokkos::initialize(); }
  void TearDown() override { Kokkos::finalize(); }
};
[[maybe_unused]] const auto* const kRuntime = testing::AddGlobalTestEnvironment(new KokkosRuntime);

using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
using Types = testing::Types<KokkosView<float, 2>, KokkosView<const double, 3>,
                             Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>,
                             Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace, Unmanaged>>;
template <class X>
class KokkosConformance : public testing::Test {};
TYPED_TEST_SUITE(KokkosConformance, Types);
TYPED_TEST(KokkosConformance, BadInput) { test::check_conformance<TypeParam>(); }

TEST(Kokkos, AViewSharesTheTensorsMemory) {
  VersionedProducer p({2, 3});
  p.set_strides({8, 2});
  {
    auto held = to<KokkosView<float, 2>>(Tensor::take(&p.managed));
    EXPECT_EQ(held->data(), reinterpret_cast<float*>(p.bytes.data()));
    EXPECT_EQ(&(*held)(1, 2), held->data() + 12);
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(Kokkos, AManagedViewIsHeldByItsCount) {
  Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace> view("v", 2, 3);
  view(1, 2) = 7;
  {
    Tensor t = from(view);
    EXPECT_EQ(view.use_count(), 2);
    EXPECT_EQ(t.dl.data, view.data());
    EXPECT_EQ(t.dl.strides[0], 1);
    EXPECT_EQ((t.view<const double, 2>()(1, 2)), 7);
  }
  EXPECT_EQ(view.use_count(), 1);
  Kokkos::View<const double**, Kokkos::LayoutLeft, Kokkos::HostSpace> reads = view;
  EXPECT_TRUE(from(reads).readonly());
}

TEST(Kokkos, AnUnmanagedViewNeedsAnOwnerAndExtentsOfTheTypeAreChecked) {
  float data[6] = {};
  const KokkosView<float, 1> view(data, Kokkos::LayoutStride(6, 1));
  expect_error(ErrorCode::kRefused, {"from<Kokkos::View>", "unmanaged"}, [&] { return from(view), 0; });
  EXPECT_EQ(from(borrow(view, unowned)).dl.data, data);
  VersionedProducer p({2, 3});
  using Fixed = Kokkos::View<float* [4], Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>;
  expect_error(ErrorCode::kMalformed, {"extent 4 on axis 1"}, [&] { return to<Fixed>(Tensor::take(&p.managed)), 0; });
}

TEST(Kokkos, Documented) {
  test::expect_documented({
      {converter<KokkosView<float, 2>>::capabilities, "T", "N"},
      {converter<KokkosView<const float, 2>>::capabilities, "T", "N"},
  });
}

}  // namespace
}  // namespace dlbridge
