// Copies to, from and between devices, and the memory that they take: without a driver, on any, and on the fake.
#include <thread>

#include "tests/cpp/cuda_cases.h"

namespace dlbridge {
namespace {

using namespace cuda_cases;
using CudaCopies = OnFakeDriver;
using CudaCopiesWithoutDriver = NoDriver;

TEST_F(CudaCopiesWithoutDriver, host_copies_and_ready_tokens_need_none) {
  std::vector<std::int32_t> data = counted(6);
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(data.data(), kCpu, {3, 2}, {1, 3}), kCpu, 0, out));
  EXPECT_EQ(values(out), (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::ready(), 0));
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::on_stream(0), 0));
  EXPECT_OK(cuda::synchronize(Ordering::ready(), 0));
}

TEST_F(CudaCopiesWithoutDriver, zero_size_tensors_go_anywhere) {
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(nullptr, kCpu, {0, 4}, {4, 1}), kCuda1, 0, out));
  EXPECT_EQ(out.dl.device.device_id, 1);
  EXPECT_OK(cuda::copy_to_device(borrow(nullptr, kCuda0, {0, 4}, {4, 1}), kCpu, 0, out));
  EXPECT_EQ(out.dl.device.device_type, kDLCPU);
}

TEST(CudaCopiesAnyDriver, data_survives_the_way_to_the_device_and_back) {
  if (!cuda::available()) GTEST_SKIP() << cuda::unavailable_reason();
  const std::int64_t before = live_copies();
  {
    std::vector<std::int32_t> data = counted(35);
    Tensor there, again, back;
    for (const StreamHandle stream : {StreamHandle{0}, kLegacyStream, kPerThreadStream}) {
      EXPECT_OK(cuda::copy_to_device(borrow(data.data() + 34, kCpu, {7, 5}, {-5, -1}), kCuda0, stream, there));
      DLDevice device{};
      EXPECT_OK(cuda::device_of_pointer(there.dl.data, device));
      EXPECT_TRUE(same_device(device, kCuda0));
      EXPECT_OK(cuda::copy_to_device(there, kCuda0, stream, again));
      EXPECT_NE(again.dl.data, there.dl.data);
      EXPECT_OK(cuda::copy_to_device(again, kCpu, 0, back));
      EXPECT_EQ(values(back), std::vector<std::int32_t>(data.rbegin(), data.rend()));
    }
  }
  EXPECT_EQ(live_copies(), before);
}

TEST(CudaCopiesAnyDriver, strided_device_tensors_are_gathered) {
  if (!cuda::available()) GTEST_SKIP() << cuda::unavailable_reason();
  std::vector<std::int32_t> data = counted(6000);
  Tensor there;
  ASSERT_TRUE(cuda::copy_to_device(borrow(data.data(), kCpu, {6000}, {1}), kCuda0, 0, there).ok());
  struct Case {
    std::int64_t start;
    std::vector<std::int64_t> shape, strides;
  };
  const Case cases[] = {
      {0, {60, 100}, {1, 60}},
      {0, {100, 10}, {60, 1}},
      {5, {6, 2}, {1000, 1}},
      {5999, {6}, {-1000}},
      {0, {50, 7}, {0, 1}},
      {0, {3, 4, 5}, {2000, 100, 3}},
      {0, {2, 3, 2}, {3000, 1000, 1}},
      {59, {100, 60}, {60, -1}},
      {0, {2, 1500}, {3000, 2}},
      {5999, {2, 3}, {-2999, -7}},
  };
  for (const Case& c : cases) {
    auto* at = static_cast<std::int32_t*>(there.dl.data) + c.start;
    const auto expected = values(borrow(data.data() + c.start, kCpu, c.shape, c.strides));
    Tensor device, host, direct;
    EXPECT_OK(cuda::copy_to_device(borrow(at, kCuda0, c.shape, c.strides, there.ready), kCpu, 0, direct));
    EXPECT_EQ(values(direct), expected);
    EXPECT_OK(cuda::copy_to_device(borrow(at, kCuda0, c.shape, c.strides, there.ready), kCuda0, 0, device));
    EXPECT_FALSE(has_negative_stride(device.dl) || has_zero_stride(device.dl));
    EXPECT_OK(cuda::copy_to_device(device, kCpu, 0, host));
    EXPECT_EQ(values(host), expected);
  }
}

TEST_F(CudaCopies, a_host_copy_waits_for_the_producer) {
  const StreamHandle producer = stream();
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(data, kCuda0, {4}, {1}, Ordering::on_stream(producer)), kCpu, 0, out));
  EXPECT_EQ(values(out), std::vector<std::int32_t>(4, kFilled));
  EXPECT_TRUE(out.ready.is_ready());
}

TEST_F(CudaCopies, a_device_copy_waits_for_the_producer_and_the_consumer_for_it) {
  for (const int target : {0, 1}) {
    fake.reset();
    const StreamHandle producer = stream(), consumer = stream(target);
    auto* data = device_array(4, 0);
    slow_fill(data, 4, producer);
    Tensor out;
    EXPECT_OK(cuda::copy_to_device(borrow(data, kCuda0, {4}, {1}, Ordering::on_stream(producer)), {kDLCUDA, target},
                                   consumer, out));
    EXPECT_EQ(out.dl.device.device_id, target);
    EXPECT_EQ(logged("synchronize"), 0u) << "the host was blocked";
    slow_fill(data, 4, producer, 0, 9);  // the producer's next kernel reuses its memory: the copy comes first
    EXPECT_OK(cuda::synchronize(Ordering::on_stream(producer), 0));
    EXPECT_OK(cuda::synchronize(Ordering::on_stream(consumer), target));
    EXPECT_EQ(static_cast<std::int32_t*>(out.dl.data)[0], kFilled);
  }
}

TEST_F(CudaCopies, the_stream_that_was_asked_for_waits_for_the_copy) {
  std::vector<std::int32_t> data = counted(4);
  const StreamHandle first = stream(), second = stream();
  Tensor there, again;
  EXPECT_OK(cuda::copy_to_device(borrow(data.data(), kCpu, {4}, {1}), kCuda0, first, there));
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(first), 0));
  EXPECT_EQ(static_cast<std::int32_t*>(there.dl.data)[3], 3);
  EXPECT_OK(cuda::copy_to_device(there, kCuda0, second, again));
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(second), 0));
  EXPECT_EQ(static_cast<std::int32_t*>(again.dl.data)[3], 3);
}

TEST_F(CudaCopies, pinned_memory_is_read_before_the_call_returns) {
  auto* pinned = static_cast<std::int32_t*>(fake.alloc_host(16));
  for (int i = 0; i < 4; ++i) pinned[i] = i;
  Tensor out, back;
  EXPECT_OK(cuda::copy_to_device(borrow(pinned, kCpu, {4}, {1}), kCuda0, 0, out));
  pinned[0] = 1000;
  EXPECT_OK(cuda::copy_to_device(out, kCpu, 0, back));
  EXPECT_EQ(values(back), counted(4));
  fake.free(pinned);
}

TEST_F(CudaCopies, zero_size_copies_call_no_driver) {
  Tensor out;
  for (const DLDevice from : {kCpu, kCuda0})
    for (const DLDevice to : {kCpu, kCuda0, kCuda1})
      EXPECT_OK(cuda::copy_to_device(borrow(nullptr, from, {3, 0}, {1, 1}), to, 0, out));
  const std::int64_t shape[] = {2, 0};
  EXPECT_OK(cuda::allocate_device(kInt32, 2, shape, kCuda1, 0, out));
  EXPECT_EQ(fake.log(), "");
}

TEST_F(CudaCopies, sparse_layouts_do_not_fetch_what_lies_between) {
  auto* data = device_array(100000, 0);
  for (int i = 0; i < 100000; ++i) data[i] = i;
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(data, kCuda0, {10, 3}, {10000, 1}), kCpu, 0, out));
  EXPECT_EQ(values(out)[3], 10000);
  EXPECT_EQ(logged("memcpy_2d width=12 height=10"), 1u) << fake.log();
  EXPECT_EQ(logged("memcpy_dtoh"), 0u);
}

TEST_F(CudaCopies, a_transposed_array_moves_in_one_block) {
  auto* data = device_array(6, 0);
  for (int i = 0; i < 6; ++i) data[i] = i;
  for (const DLDevice to : {kCuda0, kCuda1}) {
    fake.reset();
    Tensor out, back;
    EXPECT_OK(cuda::copy_to_device(borrow(data, kCuda0, {2, 3}, {1, 2}), to, 0, out));
    EXPECT_EQ(logged("memcpy_"), 1u);
    EXPECT_OK(cuda::copy_to_device(out, kCpu, 0, back));
    EXPECT_EQ(values(back), (std::vector<std::int32_t>{0, 2, 4, 1, 3, 5}));
  }
}

TEST_F(CudaCopies, strided_tensors_reach_the_other_device) {
  auto* data = device_array(40, 0);
  for (int i = 0; i < 40; ++i) data[i] = i;
  Tensor out, back;
  EXPECT_OK(cuda::copy_to_device(borrow(data + 39, kCuda0, {20}, {-2}), kCuda1, stream(1), out));
  EXPECT_OK(cuda::copy_to_device(out, kCpu, 0, back));
  EXPECT_EQ(values(back)[0], 39);
  EXPECT_EQ(values(back)[19], 1);
}

TEST_F(CudaCopies, memory_is_freed_the_way_it_was_allocated_from_any_thread) {
  const std::int64_t shape[] = {8};
  Tensor pooled, plain;
  EXPECT_OK(cuda::allocate_device(kInt32, 1, shape, kCuda1, kLegacyStream, pooled));
  EXPECT_OK(cuda::allocate_device(kInt32, 1, shape, kCuda1, stream(1), plain));
  EXPECT_EQ(logged("alloc_async"), 1u) << "is FAKE_CUDA_NO_POOLS set?";
  EXPECT_EQ(logged("alloc bytes=32 device=1"), 1u);
  std::thread([a = std::move(pooled), b = std::move(plain)] {}).join();
  EXPECT_EQ(logged("free_async stream=legacy1"), 1u);
  EXPECT_EQ(logged("free\n"), 1u);
}

TEST_F(CudaCopies, memory_outlives_the_stream_that_it_was_made_for) {
  std::vector<std::int32_t> data = counted(4);
  Tensor out, back;
  const StreamHandle short_lived = stream();
  EXPECT_OK(cuda::copy_to_device(borrow(data.data(), kCpu, {4}, {1}), kCuda0, short_lived, out));
  ASSERT_EQ(fake.stream_destroy(reinterpret_cast<void*>(short_lived)), 0);
  EXPECT_OK(cuda::order(kLegacyStream, out.ready, 0));
  EXPECT_OK(cuda::copy_to_device(out, kCpu, 0, back));
  EXPECT_EQ(values(back), data);
}

TEST_F(CudaCopies, the_nth_device_allocation_failing_is_out_of_memory_and_leaks_nothing) {
  std::vector<std::int32_t> data = counted(4);
  for (const StreamHandle on : {kLegacyStream, stream()}) {
    for (std::int64_t n = 0;; ++n) {
      Tensor there, again;
      fake.fail_alloc_after(n);
      Status status = cuda::copy_to_device(borrow(data.data(), kCpu, {4}, {1}), kCuda0, on, there);
      if (status.ok()) status = cuda::copy_to_device(there, kCuda1, 0, again);
      fake.fail_alloc_after(-1);
      if (status.ok()) {
        EXPECT_EQ(n, 2);
        break;
      }
      EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
      EXPECT_NE(status.message().find("16 bytes"), std::string::npos) << status.message();
    }
  }
}

}  // namespace
}  // namespace dlbridge
