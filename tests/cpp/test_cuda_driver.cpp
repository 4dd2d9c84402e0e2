// The driver as it is found: none, any, or tests/cuda/fake_libcuda.c (through LD_LIBRARY_PATH). Without one the
// refusals are tested, with a real one what needs no fake.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/cpp/cuda_cases.h"

namespace dlbridge {
namespace {

using namespace cuda_cases;
using CudaDriver = OnFakeDriver;
using CudaDriverWithoutDriver = NoDriver;

TEST_F(CudaDriverWithoutDriver, says_why_and_counts_no_device) {
  EXPECT_NE(cuda::unavailable_reason(), "");
  EXPECT_EQ(cuda::device_count(), 0);
}

TEST_F(CudaDriverWithoutDriver, every_entry_fails_with_the_reason_and_none_crashes) {
  DLDevice device{};
  int current = 0;
  StreamHandle stream = 0;
  cuda::DeviceGuard guard;
  const ErrorCode code = ErrorCode::kCuda;
  EXPECT_ERROR(cuda::device_of_pointer(&device, device), code, "CUDA is not available");
  EXPECT_ERROR(cuda::current_device(current), code, "CUDA is not available");
  EXPECT_ERROR(cuda::relay_stream(0, stream), code, "CUDA is not available");
  EXPECT_ERROR(cuda::relay_stream(-1, stream), code, "CUDA is not available");
  EXPECT_ERROR(guard.enter(0), code, "CUDA is not available");
  EXPECT_ERROR(cuda::order(1, Ordering::on_stream(2), 0), code, "CUDA is not available");
  EXPECT_ERROR(cuda::synchronize(Ordering::on_stream(1), 0), code, "CUDA is not available");
  std::int32_t x = 0;
  Tensor out;
  EXPECT_ERROR(cuda::copy_to_device(borrow(&x, kCpu, {1}, {1}), kCuda0, 0, out), code, "CUDA is not available");
}

TEST(CudaDriverAnyDriver, unknown_devices_and_pointers_are_named) {
  if (!cuda::available()) GTEST_SKIP() << cuda::unavailable_reason();
  std::int32_t x = 0;
  Tensor out;
  DLDevice device{};
  StreamHandle stream = 0;
  EXPECT_ERROR(cuda::device_of_pointer(&x, device), ErrorCode::kMalformed, "is not CUDA memory");
  const Tensor host = borrow(&x, kCpu, {1}, {1});
  EXPECT_ERROR(cuda::copy_to_device(host, {kDLCUDA, 63}, 0, out), ErrorCode::kMalformed, "cuda:63");
  for (const int bad : {-1, 63, 64, 1 << 30})
    EXPECT_ERROR(cuda::relay_stream(bad, stream), ErrorCode::kMalformed, "does not exist");
  EXPECT_ERROR(cuda::copy_to_device(borrow(&x, {kDLMetal, 0}, {1}, {1}), kCpu, 0, out), ErrorCode::kRefused, "metal:0");
  EXPECT_ERROR(cuda::copy_to_device(host, {kDLVulkan, 0}, 0, out), ErrorCode::kRefused, "vulkan:0");
}

TEST_F(CudaDriver, pointers_tell_their_kind_and_device) {
  DLDevice device{};
  EXPECT_OK(cuda::device_of_pointer(device_array(4, 1) + 2, device));
  EXPECT_TRUE(same_device(device, kCuda1));
  EXPECT_OK(cuda::device_of_pointer(device_array(4, 1, true), device));
  EXPECT_TRUE(same_device(device, {kDLCUDAManaged, 1}));
  void* pinned = fake.alloc_host(16);
  EXPECT_OK(cuda::device_of_pointer(pinned, device));
  EXPECT_TRUE(same_device(device, {kDLCUDAHost, 0}));
  fake.free(pinned);
  EXPECT_ERROR(cuda::device_of_pointer(pinned, device), ErrorCode::kMalformed, "is not CUDA memory");
}

TEST_F(CudaDriver, guards_nest_and_restore_what_was_current) {
  int device = -1;
  EXPECT_OK(cuda::current_device(device));
  EXPECT_EQ(device, 0);
  {
    cuda::DeviceGuard outer;
    ASSERT_TRUE(outer.enter(1).ok());
    EXPECT_OK(cuda::current_device(device));
    EXPECT_EQ(device, 1);
    fake.reset();
    cuda::DeviceGuard same, inner;
    ASSERT_TRUE(same.enter(1).ok());
    EXPECT_EQ(fake.log(), "") << "the device is current already";
    ASSERT_TRUE(inner.enter(0).ok());
    fake.select_device(1);  // foreign code that calls cudaSetDevice
  }
  EXPECT_EQ(fake.context_depth(), 0);
}

TEST_F(CudaDriver, sticky_errors_are_called_so) {
  fake.set_sticky(700);
  const Ordering ready = Ordering::on_stream(kLegacyStream);
  EXPECT_ERROR(cuda::synchronize(ready, 0), ErrorCode::kCuda, "sticky");
  EXPECT_ERROR(cuda::synchronize(ready, 0), ErrorCode::kCuda, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(CudaDriver, current_streams_belong_to_a_thread_and_a_device) {
  EXPECT_EQ(cuda::current_stream(0), kLegacyStream);
  cuda::set_current_stream(0, 99);
  EXPECT_EQ(cuda::current_stream(0), 99u);
  EXPECT_EQ(cuda::current_stream(1), kLegacyStream);
  EXPECT_EQ(cuda::current_stream(-1), kLegacyStream);
  std::thread([] { EXPECT_EQ(cuda::current_stream(0), kLegacyStream); }).join();
  cuda::set_current_stream(0, kLegacyStream);
}

TEST_F(CudaDriver, a_forked_child_is_told_why_nothing_works) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Status status = cuda::synchronize(Ordering::on_stream(kLegacyStream), 0);
    const bool told = !status.ok() && status.message().find("forked") != std::string::npos;
    ::_exit(told ? 0 : 1);
  }
  int exit_status = 0;
  ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
  EXPECT_TRUE(WIFEXITED(exit_status));
  EXPECT_EQ(WEXITSTATUS(exit_status), 0);
}

}  // namespace
}  // namespace dlbridge
