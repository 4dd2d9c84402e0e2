// cv::Mat and cv::cuda::GpuMat. GpuMat needs no GPU to be made over a pointer; the fake driver says where that is.
#include "dlbridge/converters/opencv.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"
#include "tests/cpp/fake_driver.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

TEST(OpenCv, Conformance) {
  test::check_conformance<cv::Mat>();
  test::check_conformance<cv::cuda::GpuMat>();
}

TEST(OpenCv, AMatKeepsTheTensorUntilItsLastCopy) {
  VersionedProducer p({4, 5, 3}, {kDLUInt, 8, 1});
  p.set_strides({20, 3, 1});  // rows padded to 20 bytes
  {
    cv::Mat m = to<cv::Mat>(Tensor::take(&p.managed));
    EXPECT_EQ(m.type(), CV_8UC3);
    EXPECT_EQ(m.size(), cv::Size(5, 4));
    EXPECT_EQ(m.step[0], 20u);
    EXPECT_EQ(m.data, reinterpret_cast<unsigned char*>(p.bytes.data()));
    EXPECT_FALSE(m.isContinuous());
    const cv::Mat region = m(cv::Rect(1, 1, 2, 2));
    m = cv::Mat();
    EXPECT_EQ(p.deleted, 0);
    EXPECT_EQ(region.at<cv::Vec3b>(0, 0)[0], p.bytes[23]);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(OpenCv, AMatThatIsMadeAnewTakesOpenCvsMemory) {
  VersionedProducer p({4, 5});
  cv::Mat m = to<cv::Mat>(Tensor::take(&p.managed));
  m.create(7, 7, CV_64F);
  EXPECT_EQ(p.deleted, 1);
  m.setTo(1);
  cv::Mat clone = to<cv::Mat>(from(m)).clone();
  EXPECT_EQ(cv::sum(clone)[0], 49);
}

TEST(OpenCv, OurTensorOfAMatHoldsItsCount) {
  cv::Mat m(3, 4, CV_32FC2, cv::Scalar(1, 2));
  const void* data = m.data;
  Tensor t = from(m(cv::Rect(1, 0, 2, 3)));
  EXPECT_EQ(t.dl.ndim, 3);
  EXPECT_EQ(t.dl.shape[2], 2);
  EXPECT_EQ(t.dl.strides[0], 8);
  EXPECT_EQ(t.dl.data, static_cast<const char*>(data) + 8);
  EXPECT_EQ(m.u->refcount, 2);
  EXPECT_EQ((t.view<const float, 3>()(2, 1, 1)), 2);
  t = Tensor();
  EXPECT_EQ(m.u->refcount, 1);
}

TEST(OpenCv, AMatOverAPointerOwnsNothing) {
  float data[6] = {};
  const cv::Mat m(2, 3, CV_32F, data);
  expect_error(ErrorCode::kRefused, {"from<cv::Mat>", "borrow(mat, keepalive)"}, [&] { return from(m), 0; });
  EXPECT_EQ(from(borrow(m, unowned)).dl.data, data);
}

TEST(OpenCv, ShapesOfEveryRank) {
  VersionedProducer p({5});
  p.set_strides({2});
  const cv::Mat column = to<cv::Mat>(Tensor::take(&p.managed));
  EXPECT_EQ(column.size(), cv::Size(1, 5));
  EXPECT_EQ(column.step[0], 8u);
  EXPECT_EQ(from(cv::Mat()).size, 0);
  VersionedProducer q({2, 3, 4, 5}, {kDLInt, 16, 1});
  const cv::Mat block = to<cv::Mat>(Tensor::take(&q.managed));
  EXPECT_EQ(block.dims, 3);
  EXPECT_EQ(block.channels(), 5);
  EXPECT_EQ(block.step[1], 40u);
  Tensor back = from(block);
  EXPECT_EQ(back.dl.ndim, 4);
  EXPECT_EQ(back.dl.strides[0], 60);
  VersionedProducer wide({1, 1, 1000}, {kDLUInt, 8, 1});
  expect_error(ErrorCode::kMalformed, {"channels", "(1, 1, 1000)"},
               [&] { return to<cv::Mat>(Tensor::take(&wide.managed)), 0; });
  VersionedProducer transposed({4, 5});
  transposed.set_strides({1, 4});
  Tensor t = Tensor::take(&transposed.managed);
  expect_error(ErrorCode::kCopyRefused, {"dense but for a larger outermost stride", "strides (1, 4)"},
               [&] { return to<cv::Mat>(std::move(t)), 0; });
  EXPECT_EQ(to<cv::Mat>(t, {.copy = copy::if_needed}).rows, 4);
}

TEST(OpenCv, EveryDepthGoesBothWays) {
  for (const detail::CvDepth& row : detail::kCvDepths) {
    SCOPED_TRACE(info(row.dtype).name);
    cv::Mat m(2, 3, CV_MAKETYPE(row.depth, 1));
    Tensor t = from(m);
    EXPECT_EQ(t.dtype().id, row.dtype);
    EXPECT_EQ(to<cv::Mat>(std::move(t)).depth(), row.depth);
  }
}

TEST(OpenCvGpu, AGpuMatComesWithItsOwnerBesideIt) {
  VersionedProducer p({4, 5});
  p.managed.dl_tensor.device = {kDLCUDA, 0};
  p.set_strides({8, 1});
  {
    const auto held = to<cv::cuda::GpuMat>(Tensor::take(&p.managed));
    EXPECT_EQ(held->rows, 4);
    EXPECT_EQ(held->step, 32u);
    EXPECT_EQ(held->data, reinterpret_cast<unsigned char*>(p.bytes.data()));
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(OpenCvGpu, TheDriverSaysWhereAGpuMatIsAndTheStreamWhenItIsReady) {
  const auto& fake = test::FakeDriver::get();
  if (!fake) GTEST_SKIP() << "libcuda.so.1 is not the fake";
  void* data = fake.alloc(64, 1);
  const cv::cuda::GpuMat m(2, 3, CV_32F, data, 16);
  expect_error(ErrorCode::kRefused, {"from<cv::cuda::GpuMat>", "owns nothing"}, [&] { return from(m), 0; });
  Tensor t = from(borrow(m, unowned));
  EXPECT_TRUE(same_device(t.dl.device, {kDLCUDA, 1}));
  EXPECT_EQ(t.dl.strides[0], 4);
  EXPECT_EQ(t.ready, Ordering::on_stream(kLegacyStream));
  void* stream = fake.stream_create(1, 0, 0);
  t = from(borrow(m, unowned), {.stream = stream_ref::from_handle(reinterpret_cast<StreamHandle>(stream))});
  EXPECT_EQ(t.ready.handle, reinterpret_cast<StreamHandle>(stream));
  EXPECT_TRUE(from(borrow(m, unowned), {.sync = sync::none}).ready.is_ready());
  fake.free(data);
}

// The consumer's stream waits by an event, the host does not; sync::host and sync::none do what they say.
TEST(OpenCvGpu, TheConsumersStreamWaitsForTheProducers) {
  const auto& fake = test::FakeDriver::get();
  if (!fake) GTEST_SKIP() << "libcuda.so.1 is not the fake";
  void* data = fake.alloc(64, 0);
  void* producer = fake.stream_create(0, 0, 0);
  void* consumer = fake.stream_create(0, 0, 0);
  const cv::cuda::GpuMat m(2, 3, CV_32F, data, 16);
  const auto ref = [](void* s) { return stream_ref::from_handle(reinterpret_cast<StreamHandle>(s)); };
  const auto log_of = [&](const options& o) {
    Tensor t = from(borrow(m, unowned), {.stream = ref(producer)});
    fake.reset();
    const auto held = to<cv::cuda::GpuMat>(std::move(t), o);
    return fake.log();
  };
  EXPECT_NE(log_of({.stream = ref(consumer)}).find("stream_wait"), std::string::npos);
  EXPECT_EQ(log_of({.stream = ref(consumer)}).find("stream_synchronize"), std::string::npos);
  EXPECT_NE(log_of({.sync = sync::host}).find("stream_synchronize"), std::string::npos);
  EXPECT_EQ(log_of({.stream = ref(consumer), .sync = sync::none}).find("stream_wait"), std::string::npos);
  EXPECT_EQ(log_of({.stream = ref(producer)}).find("stream_wait"), std::string::npos)
      << "the same stream needs no event";
  fake.free(data);
}

TEST(OpenCv, Documented) {
  test::expect_documented({
      {converter<cv::Mat>::capabilities},
      {converter<cv::cuda::GpuMat>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
