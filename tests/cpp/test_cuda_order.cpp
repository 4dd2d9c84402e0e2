// Who waits for whom: streams, events and graph captures, on the fake driver.
#include <thread>

#include "tests/cpp/cuda_cases.h"

namespace dlbridge {
namespace {

using namespace cuda_cases;
using CudaOrder = OnFakeDriver;

TEST_F(CudaOrder, ready_data_and_the_same_stream_call_nothing) {
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::ready(), 0));
  EXPECT_OK(cuda::order(77, Ordering::on_stream(77), 0));
  EXPECT_OK(cuda::synchronize(Ordering::ready(), 0));
  EXPECT_EQ(fake.log(), "");
}

TEST_F(CudaOrder, another_stream_waits_by_an_event_and_the_host_does_not) {
  const StreamHandle producer = stream(), consumer = stream();
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  EXPECT_OK(cuda::order(consumer, Ordering::on_stream(producer), 0));
  EXPECT_NE(data[0], kFilled) << "order() ran the producer's kernel: it blocked the host";
  EXPECT_EQ(logged("synchronize"), 0u);
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(consumer), 0));
  EXPECT_EQ(data[3], kFilled);
}

TEST_F(CudaOrder, without_the_wait_the_consumer_sees_old_values) {  // the negative control of the test above
  const StreamHandle producer = stream(), consumer = stream();
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(consumer), 0));
  EXPECT_NE(data[3], kFilled);
}

TEST_F(CudaOrder, one_event_per_thread_serves_all_waits) {
  const StreamHandle a = stream(), b = stream();
  EXPECT_OK(cuda::order(b, Ordering::on_stream(a), 0));
  fake.reset();
  for (int i = 0; i < 10; ++i) EXPECT_OK(cuda::order(b, Ordering::on_stream(a), 0));
  EXPECT_EQ(logged("event_create"), 0u);
  std::thread([&] { EXPECT_OK(cuda::order(a, Ordering::on_stream(b), 0)); }).join();
  EXPECT_EQ(logged("event_create"), 1u);
  EXPECT_EQ(logged("flags=2"), 1u) << "timing is not disabled";
  EXPECT_EQ(logged("event_destroy"), 1u) << "the thread's event was not destroyed with it";
}

TEST_F(CudaOrder, streams_of_other_contexts_are_waited_for_too) {
  const StreamHandle producer = stream(0, true);
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::on_stream(producer), 0));
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(kLegacyStream), 0));
  EXPECT_EQ(data[0], kFilled);
}

TEST_F(CudaOrder, events_are_waited_for) {
  const StreamHandle producer = stream();
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  cuda::CUevent event = nullptr;
  {
    cuda::DeviceGuard guard;
    ASSERT_TRUE(guard.enter(0).ok());
    ASSERT_EQ(cuda::functions().event_create(&event, 2), 0);
    ASSERT_EQ(cuda::functions().event_record(event, reinterpret_cast<cuda::CUstream>(producer)), 0);
  }
  const Ordering ready = Ordering::at_event(reinterpret_cast<std::uintptr_t>(event));
  EXPECT_OK(cuda::order(kLegacyStream, ready, 0));
  EXPECT_NE(data[0], kFilled);
  EXPECT_OK(cuda::synchronize(ready, 0));
  EXPECT_EQ(data[0], kFilled);
  cuda::functions().event_destroy(event);
}

TEST_F(CudaOrder, destroyed_streams_are_an_error) {
  const StreamHandle gone = stream();
  ASSERT_EQ(fake.stream_destroy(reinterpret_cast<void*>(gone)), 0);
  EXPECT_ERROR(cuda::order(kLegacyStream, Ordering::on_stream(gone), 0), ErrorCode::kCuda, "CUDA_ERROR_INVALID_HANDLE");
  EXPECT_ERROR(cuda::order(gone, Ordering::on_stream(kLegacyStream), 0), ErrorCode::kCuda, "CUDA_ERROR_INVALID_HANDLE");
}

TEST_F(CudaOrder, numbers_that_are_no_stream_are_refused_before_the_driver_follows_them) {
  std::int32_t x = 0;
  Tensor out;
  for (const StreamHandle bad : {StreamHandle{3}, StreamHandle{4095}, StreamHandle{0x10001}, ~StreamHandle{0}}) {
    const ErrorCode code = ErrorCode::kMalformed;
    EXPECT_ERROR(cuda::order(bad, Ordering::on_stream(kLegacyStream), 0), code, "is not a CUDA stream");
    EXPECT_ERROR(cuda::order(kLegacyStream, Ordering::on_stream(bad), 0), code, "is not a CUDA stream");
    EXPECT_ERROR(cuda::synchronize(Ordering::on_stream(bad), 0), code, "is not a CUDA stream");
    EXPECT_ERROR(cuda::copy_to_device(borrow(&x, kCpu, {1}, {1}), kCuda0, bad, out), code, "is not a CUDA stream");
    EXPECT_ERROR(cuda::check_stream_handle(bad), code, "is not a CUDA stream");
  }
  const StreamHandle unmapped = 0x7000;
  EXPECT_ERROR(cuda::check_stream_handle(unmapped), ErrorCode::kMalformed, "is not a CUDA stream");
  for (const StreamHandle good : {kLegacyStream, kPerThreadStream, stream()})
    EXPECT_OK(cuda::check_stream_handle(good));
}

TEST_F(CudaOrder, tokens_move_to_the_relay_stream) {
  auto* data = device_array(4, 0);
  slow_fill(data, 4, kPerThreadStream);
  Ordering ready = Ordering::on_stream(kPerThreadStream);
  EXPECT_OK(cuda::move_to_relay(ready, 0));
  StreamHandle relay = 0;
  EXPECT_OK(cuda::relay_stream(0, relay));
  EXPECT_EQ(ready, Ordering::on_stream(relay));
  EXPECT_OK(cuda::synchronize(ready, 0));
  EXPECT_EQ(data[0], kFilled);
}

TEST_F(CudaOrder, graph_capture_refuses_a_wait_and_survives) {
  const StreamHandle capturing = stream(), other = stream();
  fake.set_capture(reinterpret_cast<void*>(capturing), 5);
  EXPECT_OK(cuda::order(capturing, Ordering::ready(), 0));
  EXPECT_OK(cuda::order(capturing, Ordering::on_stream(capturing), 0));
  EXPECT_ERROR(cuda::order(capturing, Ordering::on_stream(other), 0), ErrorCode::kRefused, "is being captured");
  EXPECT_ERROR(cuda::order(other, Ordering::on_stream(capturing), 0), ErrorCode::kRefused, "is being captured");
  EXPECT_ERROR(cuda::order(capturing, Ordering::at_event(1), 0), ErrorCode::kRefused, "is being captured");
  EXPECT_ERROR(cuda::synchronize(Ordering::on_stream(capturing), 0), ErrorCode::kRefused, "is being captured");
  fake.set_capture(reinterpret_cast<void*>(other), 5);
  EXPECT_OK(cuda::order(capturing, Ordering::on_stream(other), 0));
  fake.set_capture(reinterpret_cast<void*>(other), 6);
  EXPECT_ERROR(cuda::order(capturing, Ordering::on_stream(other), 0), ErrorCode::kRefused, "is being captured");
  std::int32_t x = 0;
  Tensor out;
  EXPECT_ERROR(cuda::copy_to_device(borrow(&x, kCpu, {1}, {1}), kCuda0, capturing, out), ErrorCode::kRefused, "graph");
  EXPECT_EQ(logged("capture_invalidated"), 0u);
  for (const StreamHandle s : {capturing, other}) fake.set_capture(reinterpret_cast<void*>(s), 0);
}

TEST_F(CudaOrder, legacy_work_during_a_blocking_capture_is_refused) {
  void* capturing = fake.stream_create(0, 1, 0);
  fake.set_capture(capturing, 9);
  EXPECT_ERROR(cuda::order(stream(), Ordering::on_stream(kLegacyStream), 0), ErrorCode::kRefused, "legacy");
  fake.set_capture(capturing, 0);
}

}  // namespace
}  // namespace dlbridge
