// The CUDA side against tests/cuda/fake_libcuda.c (found through LD_LIBRARY_PATH); without any libcuda.so.1 the
// refusals are tested, and with a real driver what needs no fake.
#include "dlbridge/cuda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "dlbridge/device_copy.h"

namespace dlbridge {
namespace {

// The fake's own functions; all null where the driver is not the fake.
struct Fake {
  std::size_t (*log)(char*, std::size_t) = nullptr;
  void (*reset)() = nullptr;
  void* (*alloc)(std::size_t, int) = nullptr;
  void* (*alloc_managed)(std::size_t, int) = nullptr;
  void* (*alloc_host)(std::size_t) = nullptr;
  int (*free)(void*) = nullptr;
  std::size_t (*live_bytes)() = nullptr;
  void (*fail_alloc_after)(std::int64_t) = nullptr;
  void (*set_sticky)(int) = nullptr;
  void* (*stream_create)(int, int, int) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*fill)(void*, int, std::size_t, int, void*) = nullptr;
  void (*synchronize)() = nullptr;
  void (*set_capture)(void*, std::uint64_t) = nullptr;
  int (*context_depth)() = nullptr;
  int (*select_device)(int) = nullptr;

  static const Fake& get() {
    static const Fake fake = load();
    return fake;
  }
  explicit operator bool() const { return log != nullptr; }

 private:
  static Fake load() {
    Fake f;
    void* handle = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == nullptr || ::dlsym(handle, "fake_cuda_log") == nullptr) return f;
    const auto find = [&](auto& pointer, const char* name) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(::dlsym(handle, name));
      if (pointer == nullptr) ADD_FAILURE() << "the fake has no " << name;
    };
    find(f.log, "fake_cuda_log");
    find(f.reset, "fake_cuda_reset");
    find(f.alloc, "fake_cuda_alloc");
    find(f.alloc_managed, "fake_cuda_alloc_managed");
    find(f.alloc_host, "fake_cuda_alloc_host");
    find(f.free, "fake_cuda_free");
    find(f.live_bytes, "fake_cuda_live_bytes");
    find(f.fail_alloc_after, "fake_cuda_fail_alloc_after");
    find(f.set_sticky, "fake_cuda_set_sticky");
    find(f.stream_create, "fake_cuda_stream_create");
    find(f.stream_destroy, "cuStreamDestroy_v2");
    find(f.fill, "fake_cuda_fill");
    find(f.synchronize, "fake_cuda_synchronize");
    find(f.set_capture, "fake_cuda_set_capture");
    find(f.context_depth, "fake_cuda_context_depth");
    find(f.select_device, "fake_cuda_select_device");
    return f;
  }
};

constexpr DLDataType kInt32 = to_dl(DType::kInt32);
constexpr DLDevice kCpu{kDLCPU, 0};
constexpr DLDevice kCuda0{kDLCUDA, 0};
constexpr DLDevice kCuda1{kDLCUDA, 1};

Tensor borrow(void* data, DLDevice device, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
              Ordering ready = Ordering::ready()) {
  Tensor t;
  t.set_dtype(*find_dtype(kInt32));
  t.dl.device = device;
  t.dl.data = data;
  t.ready = ready;
  EXPECT_TRUE(build_layout(t, static_cast<std::int64_t>(shape.size()), shape.data(), strides.data(),
                           StrideUnit::kElements)
                  .ok());
  return t;
}

std::vector<std::int32_t> values(const Tensor& host) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(host.size));
  if (host.size > 0) gather_to_dense(host.dl, out.data());
  return out;
}

std::vector<std::int32_t> counted(std::size_t n) {
  std::vector<std::int32_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

#define EXPECT_OK(expression)                                                 \
  do {                                                                        \
    const Status status_ = (expression);                                      \
    EXPECT_TRUE(status_.ok()) << (status_.ok() ? "" : status_.message());     \
  } while (false)
#define EXPECT_ERROR(expression, error_code, text)                            \
  do {                                                                        \
    const Status status_ = (expression);                                      \
    ASSERT_FALSE(status_.ok());                                               \
    EXPECT_EQ(status_.code(), error_code);                                    \
    EXPECT_NE(status_.message().find(text), std::string::npos) << status_.message(); \
  } while (false)

// ---- no driver

class NoDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::available()) GTEST_SKIP() << "a driver is here";
  }
};

TEST_F(NoDriver, says_why_and_counts_no_device) {
  EXPECT_NE(cuda::unavailable_reason(), "");
  EXPECT_EQ(cuda::device_count(), 0);
}

TEST_F(NoDriver, every_entry_fails_with_the_reason_and_none_crashes) {
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

TEST_F(NoDriver, host_copies_and_ready_tokens_need_none) {
  std::vector<std::int32_t> data = counted(6);
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(data.data(), kCpu, {3, 2}, {1, 3}), kCpu, 0, out));
  EXPECT_EQ(values(out), (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::ready(), 0));
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::on_stream(0), 0));
  EXPECT_OK(cuda::synchronize(Ordering::ready(), 0));
}

TEST_F(NoDriver, zero_size_tensors_go_anywhere) {
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(nullptr, kCpu, {0, 4}, {4, 1}), kCuda1, 0, out));
  EXPECT_EQ(out.dl.device.device_id, 1);
  EXPECT_OK(cuda::copy_to_device(borrow(nullptr, kCuda0, {0, 4}, {4, 1}), kCpu, 0, out));
  EXPECT_EQ(out.dl.device.device_type, kDLCPU);
}

// ---- any driver

TEST(AnyDriver, data_survives_the_way_to_the_device_and_back) {
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

TEST(AnyDriver, strided_device_tensors_are_gathered) {
  if (!cuda::available()) GTEST_SKIP() << cuda::unavailable_reason();
  std::vector<std::int32_t> data = counted(6000);
  Tensor there;
  ASSERT_TRUE(cuda::copy_to_device(borrow(data.data(), kCpu, {6000}, {1}), kCuda0, 0, there).ok());
  struct Case {
    std::int64_t start;
    std::vector<std::int64_t> shape, strides;
  };
  const Case cases[] = {
      {0, {60, 100}, {1, 60}},  {0, {100, 10}, {60, 1}},       {5, {6, 2}, {1000, 1}},    {5999, {6}, {-1000}},
      {0, {50, 7}, {0, 1}},     {0, {3, 4, 5}, {2000, 100, 3}}, {0, {2, 3, 2}, {3000, 1000, 1}},
      {59, {100, 60}, {60, -1}}, {0, {2, 1500}, {3000, 2}},      {5999, {2, 3}, {-2999, -7}},
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

TEST(AnyDriver, unknown_devices_and_pointers_are_named) {
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

// ---- the fake

class FakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (!Fake::get()) GTEST_SKIP() << "libcuda.so.1 is not the fake";
    ASSERT_TRUE(cuda::available()) << cuda::unavailable_reason();
    ASSERT_GE(cuda::device_count(), 2) << "set FAKE_CUDA_DEVICES to 2 or more";
    StreamHandle stream = 0;
    for (const int device : {0, 1}) ASSERT_TRUE(cuda::relay_stream(device, stream).ok());
    fake.reset();
    live_bytes_ = fake.live_bytes();
    copies_ = live_copies();
  }
  void TearDown() override {
    if (!Fake::get()) return;
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
  StreamHandle stream(int device = 0, bool own_context = false) {
    return reinterpret_cast<StreamHandle>(fake.stream_create(device, 0, own_context));
  }
  // A kernel that fills with 0x01010101, some time.
  void slow_fill(void* data, std::size_t count, StreamHandle on, int device = 0, int value = 1) {
    ASSERT_EQ(fake.fill(data, value, 4 * count, device, reinterpret_cast<void*>(on)), 0);
  }
  std::string log() {
    std::string text(fake.log(nullptr, 0), 0);
    fake.log(text.data(), text.size() + 1);
    return text;
  }
  std::size_t logged(const std::string& what) {
    const std::string text = log();
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }

  const Fake& fake = Fake::get();
  std::vector<void*> blocks_;
  std::size_t live_bytes_ = 0;
  std::int64_t copies_ = 0;
};

constexpr std::int32_t kFilled = 0x01010101;

TEST_F(FakeDriver, pointers_tell_their_kind_and_device) {
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

TEST_F(FakeDriver, guards_nest_and_restore_what_was_current) {
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
    EXPECT_EQ(log(), "") << "the device is current already";
    ASSERT_TRUE(inner.enter(0).ok());
    fake.select_device(1);  // foreign code that calls cudaSetDevice
  }
  EXPECT_EQ(fake.context_depth(), 0);
}

TEST_F(FakeDriver, ready_data_and_the_same_stream_call_nothing) {
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::ready(), 0));
  EXPECT_OK(cuda::order(77, Ordering::on_stream(77), 0));
  EXPECT_OK(cuda::synchronize(Ordering::ready(), 0));
  EXPECT_EQ(log(), "");
}

TEST_F(FakeDriver, another_stream_waits_by_an_event_and_the_host_does_not) {
  const StreamHandle producer = stream(), consumer = stream();
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  EXPECT_OK(cuda::order(consumer, Ordering::on_stream(producer), 0));
  EXPECT_NE(data[0], kFilled) << "order() ran the producer's kernel: it blocked the host";
  EXPECT_EQ(logged("synchronize"), 0u);
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(consumer), 0));
  EXPECT_EQ(data[3], kFilled);
}

TEST_F(FakeDriver, without_the_wait_the_consumer_sees_old_values) {  // the negative control of the test above
  const StreamHandle producer = stream(), consumer = stream();
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(consumer), 0));
  EXPECT_NE(data[3], kFilled);
}

TEST_F(FakeDriver, one_event_per_thread_serves_all_waits) {
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

TEST_F(FakeDriver, streams_of_other_contexts_are_waited_for_too) {
  const StreamHandle producer = stream(0, true);
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  EXPECT_OK(cuda::order(kLegacyStream, Ordering::on_stream(producer), 0));
  EXPECT_OK(cuda::synchronize(Ordering::on_stream(kLegacyStream), 0));
  EXPECT_EQ(data[0], kFilled);
}

TEST_F(FakeDriver, events_are_waited_for) {
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

TEST_F(FakeDriver, destroyed_streams_are_an_error) {
  const StreamHandle gone = stream();
  ASSERT_EQ(fake.stream_destroy(reinterpret_cast<void*>(gone)), 0);
  EXPECT_ERROR(cuda::order(kLegacyStream, Ordering::on_stream(gone), 0), ErrorCode::kCuda, "CUDA_ERROR_INVALID_HANDLE");
  EXPECT_ERROR(cuda::order(gone, Ordering::on_stream(kLegacyStream), 0), ErrorCode::kCuda, "CUDA_ERROR_INVALID_HANDLE");
}

TEST_F(FakeDriver, numbers_that_are_no_stream_are_refused_before_the_driver_follows_them) {
  std::int32_t x = 0;
  Tensor out;
  for (const StreamHandle bad : {StreamHandle{3}, StreamHandle{4095}, StreamHandle{0x10001}, ~StreamHandle{0}}) {
    const ErrorCode code = ErrorCode::kMalformed;
    EXPECT_ERROR(cuda::order(bad, Ordering::on_stream(kLegacyStream), 0), code, "is no CUDA stream");
    EXPECT_ERROR(cuda::order(kLegacyStream, Ordering::on_stream(bad), 0), code, "is no CUDA stream");
    EXPECT_ERROR(cuda::synchronize(Ordering::on_stream(bad), 0), code, "is no CUDA stream");
    EXPECT_ERROR(cuda::copy_to_device(borrow(&x, kCpu, {1}, {1}), kCuda0, bad, out), code, "is no CUDA stream");
    EXPECT_ERROR(cuda::check_stream_handle(bad), code, "is no CUDA stream");
  }
  const StreamHandle unmapped = 0x7000;
  EXPECT_ERROR(cuda::check_stream_handle(unmapped), ErrorCode::kMalformed, "is no CUDA stream");
  for (const StreamHandle good : {kLegacyStream, kPerThreadStream, stream()})
    EXPECT_OK(cuda::check_stream_handle(good));
}

TEST_F(FakeDriver, per_thread_tokens_move_to_the_relay_stream) {
  auto* data = device_array(4, 0);
  slow_fill(data, 4, kPerThreadStream);
  Ordering ready = Ordering::on_stream(kPerThreadStream);
  EXPECT_OK(cuda::detach_from_thread(ready, 0));
  StreamHandle relay = 0;
  EXPECT_OK(cuda::relay_stream(0, relay));
  EXPECT_EQ(ready, Ordering::on_stream(relay));
  EXPECT_OK(cuda::synchronize(ready, 0));
  EXPECT_EQ(data[0], kFilled);
}

TEST_F(FakeDriver, graph_capture_refuses_a_wait_and_survives) {
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

TEST_F(FakeDriver, legacy_work_during_a_blocking_capture_is_refused) {
  void* capturing = fake.stream_create(0, 1, 0);
  fake.set_capture(capturing, 9);
  EXPECT_ERROR(cuda::order(stream(), Ordering::on_stream(kLegacyStream), 0), ErrorCode::kRefused, "legacy");
  fake.set_capture(capturing, 0);
}

TEST_F(FakeDriver, sticky_errors_are_called_so) {
  fake.set_sticky(700);
  const Ordering ready = Ordering::on_stream(kLegacyStream);
  EXPECT_ERROR(cuda::synchronize(ready, 0), ErrorCode::kCuda, "sticky");
  EXPECT_ERROR(cuda::synchronize(ready, 0), ErrorCode::kCuda, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(FakeDriver, current_streams_belong_to_a_thread_and_a_device) {
  EXPECT_EQ(cuda::current_stream(0), kLegacyStream);
  cuda::set_current_stream(0, 99);
  EXPECT_EQ(cuda::current_stream(0), 99u);
  EXPECT_EQ(cuda::current_stream(1), kLegacyStream);
  EXPECT_EQ(cuda::current_stream(-1), kLegacyStream);
  std::thread([] { EXPECT_EQ(cuda::current_stream(0), kLegacyStream); }).join();
  cuda::set_current_stream(0, kLegacyStream);
}

TEST_F(FakeDriver, a_forked_child_is_told_why_nothing_works) {
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

// ---- copies

TEST_F(FakeDriver, a_host_copy_waits_for_the_producer) {
  const StreamHandle producer = stream();
  auto* data = device_array(4, 0);
  slow_fill(data, 4, producer);
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(data, kCuda0, {4}, {1}, Ordering::on_stream(producer)), kCpu, 0, out));
  EXPECT_EQ(values(out), std::vector<std::int32_t>(4, kFilled));
  EXPECT_TRUE(out.ready.is_ready());
}

TEST_F(FakeDriver, a_device_copy_waits_for_the_producer_and_the_consumer_for_it) {
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

TEST_F(FakeDriver, the_stream_that_was_asked_for_waits_for_the_copy) {
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

TEST_F(FakeDriver, pinned_memory_is_read_before_the_call_returns) {
  auto* pinned = static_cast<std::int32_t*>(fake.alloc_host(16));
  for (int i = 0; i < 4; ++i) pinned[i] = i;
  Tensor out, back;
  EXPECT_OK(cuda::copy_to_device(borrow(pinned, kCpu, {4}, {1}), kCuda0, 0, out));
  pinned[0] = 1000;
  EXPECT_OK(cuda::copy_to_device(out, kCpu, 0, back));
  EXPECT_EQ(values(back), counted(4));
  fake.free(pinned);
}

TEST_F(FakeDriver, zero_size_copies_call_no_driver) {
  Tensor out;
  for (const DLDevice from : {kCpu, kCuda0})
    for (const DLDevice to : {kCpu, kCuda0, kCuda1})
      EXPECT_OK(cuda::copy_to_device(borrow(nullptr, from, {3, 0}, {1, 1}), to, 0, out));
  const std::int64_t shape[] = {2, 0};
  EXPECT_OK(cuda::allocate_device(kInt32, 2, shape, kCuda1, 0, out));
  EXPECT_EQ(log(), "");
}

TEST_F(FakeDriver, sparse_layouts_do_not_fetch_what_lies_between) {
  auto* data = device_array(100000, 0);
  for (int i = 0; i < 100000; ++i) data[i] = i;
  Tensor out;
  EXPECT_OK(cuda::copy_to_device(borrow(data, kCuda0, {10, 3}, {10000, 1}), kCpu, 0, out));
  EXPECT_EQ(values(out)[3], 10000);
  EXPECT_EQ(logged("memcpy_2d width=12 height=10"), 1u) << log();
  EXPECT_EQ(logged("memcpy_dtoh"), 0u);
}

TEST_F(FakeDriver, a_transposed_array_moves_in_one_block) {
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

TEST_F(FakeDriver, strided_tensors_reach_the_other_device) {
  auto* data = device_array(40, 0);
  for (int i = 0; i < 40; ++i) data[i] = i;
  Tensor out, back;
  EXPECT_OK(cuda::copy_to_device(borrow(data + 39, kCuda0, {20}, {-2}), kCuda1, stream(1), out));
  EXPECT_OK(cuda::copy_to_device(out, kCpu, 0, back));
  EXPECT_EQ(values(back)[0], 39);
  EXPECT_EQ(values(back)[19], 1);
}

TEST_F(FakeDriver, memory_is_freed_the_way_it_was_allocated_from_any_thread) {
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

TEST_F(FakeDriver, memory_outlives_the_stream_that_it_was_made_for) {
  std::vector<std::int32_t> data = counted(4);
  Tensor out, back;
  const StreamHandle short_lived = stream();
  EXPECT_OK(cuda::copy_to_device(borrow(data.data(), kCpu, {4}, {1}), kCuda0, short_lived, out));
  ASSERT_EQ(fake.stream_destroy(reinterpret_cast<void*>(short_lived)), 0);
  EXPECT_OK(cuda::order(kLegacyStream, out.ready, 0));
  EXPECT_OK(cuda::copy_to_device(out, kCpu, 0, back));
  EXPECT_EQ(values(back), data);
}

TEST_F(FakeDriver, the_nth_device_allocation_failing_is_out_of_memory_and_leaks_nothing) {
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
