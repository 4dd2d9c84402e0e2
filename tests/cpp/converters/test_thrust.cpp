// Thrust's vectors, with its plain C++ back end: device_vector then is memory of the CPU, and no nvcc is needed.
#include "dlbridge/converters/thrust.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

TEST(Thrust, Conformance) { test::check_conformance<thrust::host_vector<float>>(); }

TEST(Thrust, VectorsMoveIn) {
  thrust::host_vector<float> h(3, 2.0F);
  const float* data = h.data();
  Tensor t = from(std::move(h));
  EXPECT_EQ(t.dl.data, data);
  EXPECT_EQ((t.view<const float, 1>()(2)), 2);
  EXPECT_EQ(to<thrust::host_vector<float>>(t)[2], 2);
  thrust::device_vector<int> d(4, 7);
  const int* device_data = thrust::raw_pointer_cast(d.data());
  Tensor u = from(std::move(d));
  EXPECT_EQ(u.dl.data, device_data);
  EXPECT_EQ(u.dl.device.device_type, kDLCPU);
  EXPECT_EQ((u.view<const int, 1>()(3)), 7);
  EXPECT_EQ(from(thrust::device_vector<int>()).size, 0);
}

TEST(Thrust, ALentVectorStaysTheCallers) {
  thrust::device_vector<float> d(2, 1.0F);
  Tensor t = from(borrow(d, unowned));
  EXPECT_EQ(t.dl.data, thrust::raw_pointer_cast(d.data()));
  EXPECT_FALSE(t.readonly());
  EXPECT_TRUE(from(borrow(std::as_const(d), unowned)).readonly());
}

TEST(Thrust, Documented) {
  test::expect_documented({
      {converter<thrust::host_vector<float>>::capabilities, "T"},
      {converter<thrust::device_vector<float>>::capabilities, "T"},
  });
}

}  // namespace
}  // namespace dlbridge
