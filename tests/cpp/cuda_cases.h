// What the tests of the CUDA side share: int32 tensors anywhere, and a fixture on the fake driver.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/device_copy.h"
#include "tests/cpp/fake_driver.h"

namespace dlbridge::cuda_cases {

inline constexpr DLDataType kInt32 = to_dl(DType::kInt32);
inline constexpr DLDevice kCpu{kDLCPU, 0};
inline constexpr DLDevice kCuda0{kDLCUDA, 0};
inline constexpr DLDevice kCuda1{kDLCUDA, 1};

inline Tensor borrow(void* data, DLDevice device, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                     Ordering ready = Ordering::ready()) {
  Tensor t;
  t.set_dtype(*find_dtype(kInt32));
  t.dl.device = device;
  t.dl.data = data;
  t.ready = ready;
  EXPECT_TRUE(
      build_layout(t, static_cast<std::int64_t>(shape.size()), shape.data(), strides.data(), StrideUnit::kElements)
          .ok());
  return t;
}

inline std::vector<std::int32_t> values(const Tensor& host) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(host.size));
  if (host.size > 0) gather_to_dense(host.dl, out.data());
  return out;
}

inline std::vector<std::int32_t> counted(std::size_t n) {
  std::vector<std::int32_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

class NoDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::available()) GTEST_SKIP() << "a driver is here";
  }
};

// The fake, with relay streams and an empty log; no memory and no context may be left.
class OnFakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::FakeDriver::get()) GTEST_SKIP() << "libcuda.so.1 is not the fake";
    ASSERT_TRUE(cuda::available()) << cuda::unavailable_reason();
    ASSERT_GE(cuda::device_count(), 2) << "set FAKE_CUDA_DEVICES to 2 or more";
    StreamHandle stream = 0;
    for (const int device : {0, 1}) ASSERT_TRUE(cuda::relay_stream(device, stream).ok());
    fake.reset();
    live_bytes_ = fake.live_bytes();
    copies_ = live_copies();
  }
  void TearDown() override {
    if (!test::FakeDriver::get()) return;
    fake.reset();
    for (void* block : blocks_) EXPECT_EQ(fake.free(block), 1);
    EXPECT_EQ(fake.live_bytes(), live_bytes_) << "device memory leaked";
    EXPECT_EQ(live_copies(), copies_);
    EXPECT_EQ(fake.context_depth(), 0) << "a context was left current";
  }

  std::int32_t* device_array(std::size_t count, int device, bool managed = false) {
    void* block = managed ? fake.alloc_managed(4 * count, device) : fake.alloc(4 * count, device);
    blocks_.push_back(block);
    return static_cast<std::int32_t*>(block);
  }
  StreamHandle stream(int device = 0, bool own_context = false) { return fake.new_stream(device, own_context); }
  // A kernel that fills with 0x01010101, some time.
  void slow_fill(void* data, std::size_t count, StreamHandle on, int device = 0, int value = 1) {
    fake.queue_work(data, 4 * count, on, value, device);
  }
  std::size_t logged(const std::string& what) {
    const std::string text = fake.log();
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }

  const test::FakeDriver& fake = test::FakeDriver::get();
  std::vector<void*> blocks_;
  std::size_t live_bytes_ = 0;
  std::int64_t copies_ = 0;
};

inline constexpr std::int32_t kFilled = 0x01010101;

}  // namespace dlbridge::cuda_cases
