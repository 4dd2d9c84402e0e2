#include "dlbridge/device.h"

#include <gtest/gtest.h>

#include "dlbridge/stream.h"

namespace dlbridge {
namespace {

struct NamedDevice {
  const char* text;
  DLDevice device;
};
constexpr NamedDevice kNamed[] = {
    {"cpu", {kDLCPU, 0}},
    {"cuda:0", {kDLCUDA, 0}},
    {"cuda:7", {kDLCUDA, 7}},
    {"cuda_host", {kDLCUDAHost, 0}},
    {"cuda_managed:0", {kDLCUDAManaged, 0}},
    {"metal:0", {kDLMetal, 0}},
    {"rocm:1", {kDLROCM, 1}},
    {"trn:0", {kDLTrn, 0}},
};

TEST(DeviceName, RoundTrips) {
  for (const NamedDevice& d : kNamed) {
    EXPECT_EQ(device_name(d.device), d.text);
    const auto parsed = parse_device(d.text);
    ASSERT_TRUE(parsed) << d.text;
    EXPECT_TRUE(same_device(*parsed, d.device)) << d.text;
  }
}

TEST(DeviceName, NoIndexMeansTheFirstOne) { EXPECT_TRUE(same_device(*parse_device("cuda"), {kDLCUDA, 0})); }

TEST(DeviceName, TextThatIsNoDeviceIsRefused) {
  for (const char* text :
       {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "CUDA", "cuda:99999999999", ":0", "cpu "})
    EXPECT_FALSE(parse_device(text)) << "'" << text << "'";
}

TEST(DeviceName, UnknownTypePrintsItsNumber) {
  EXPECT_EQ(device_name({static_cast<DLDeviceType>(99), 3}), "device_type_99:3");
  EXPECT_EQ(find_device_type(99), nullptr);
  EXPECT_EQ(find_device_type(0), nullptr);
}

TEST(Device, HandlesAreNotAddresses) {
  for (std::int32_t type : {kDLMetal, kDLOpenCL, kDLVulkan}) EXPECT_FALSE(find_device_type(type)->direct_address);
  for (std::int32_t type : {kDLCPU, kDLCUDA, kDLCUDAManaged}) EXPECT_TRUE(find_device_type(type)->direct_address);
}

TEST(Ordering, CudasNullStreamIsTheLegacyOne) {
  EXPECT_EQ(Ordering::on_stream(0), Ordering::on_stream(kLegacyStream));
  EXPECT_NE(Ordering::on_stream(kPerThreadStream), Ordering::on_stream(kLegacyStream));
  EXPECT_NE(Ordering::at_event(1), Ordering::on_stream(1));
  EXPECT_TRUE(Ordering{}.is_ready());
  EXPECT_FALSE(Ordering::on_stream(0).is_ready());
}

}  // namespace
}  // namespace dlbridge
