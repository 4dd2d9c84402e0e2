// RMM with the real librmm, over the fake driver's memory through a memory resource of the test's own: without a GPU.
#include "dlbridge/converters/rmm.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"
#include "tests/cpp/fake_driver.h"

namespace dlbridge {
namespace {

using test::expect_error;

struct FakeResource {
  const test::FakeDriver* driver;
  void* allocate(::cuda::stream_ref, std::size_t bytes, std::size_t = 256) { return driver->alloc(bytes, 0); }
  void deallocate(::cuda::stream_ref, void* p, std::size_t, std::size_t = 256) noexcept { driver->free(p); }
  void* allocate_sync(std::size_t bytes, std::size_t = 256) { return driver->alloc(bytes, 0); }
  void deallocate_sync(void* p, std::size_t, std::size_t = 256) noexcept { driver->free(p); }
  bool operator==(const FakeResource& other) const { return driver == other.driver; }
  [[maybe_unused]] friend void get_property(const FakeResource&, ::cuda::mr::device_accessible) noexcept {}
};

TEST(Rmm, ABufferMovesInWithItsStream) {
  const auto& fake = test::FakeDriver::get();
  if (!fake) GTEST_SKIP() << "libcuda.so.1 is not the fake";
  FakeResource resource{&fake};
  const std::size_t before = fake.live_bytes();
  auto stream = static_cast<cudaStream_t>(fake.stream_create(0, 0, 0));
  {
    rmm::device_uvector<float> v(4, stream, resource);
    float* data = v.data();
    Tensor t = from(std::move(v));
    EXPECT_EQ(t.dl.data, data);
    EXPECT_TRUE(same_device(t.dl.device, {kDLCUDA, 0}));
    EXPECT_EQ(t.ready, Ordering::on_stream(reinterpret_cast<StreamHandle>(stream)));
    EXPECT_GT(fake.live_bytes(), before);
  }
  EXPECT_EQ(fake.live_bytes(), before);
}

TEST(Rmm, WhatIsNotDenseDeviceMemoryIsRefused) {
  test::Subject<rmm::device_uvector<float>> s({4});
  s.producer.set_strides({2});
  Tensor t = s.take();
  expect_error(ErrorCode::kCopyRefused, {"to<rmm::device_uvector>", "C-contiguous"},
               [&] { return to<rmm::device_uvector<float>>(t), 0; });
  test::VersionedProducer host({4});
  expect_error(ErrorCode::kRefused, {"device cuda", "cpu"},
               [&] { return to<rmm::device_uvector<float>>(Tensor::take(&host.managed)), 0; });
}

TEST(Rmm, Documented) {
  test::expect_documented({
      {converter<rmm::device_uvector<float>>::capabilities, "T"},
      {converter<rmm::device_buffer>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
