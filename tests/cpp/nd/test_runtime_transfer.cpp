// Copies, streams and peers against the fake driver.
#include "ndarray/runtime/transfer.h"

#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "dlbridge/cuda_order.h"
#include "dlbridge/cuda_peer.h"
#include "dlbridge/device_copy.h"
#include "ndarray/core/copy.h"
#include "ndarray/runtime/caching_pool.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/staging.h"
#include "ndarray/runtime/streams.h"
#include "tests/cpp/nd/with_fake_driver.h"

namespace dlbridge::nd {
namespace {

class Transfer : public test::WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    if (!fake) return;
    ASSERT_TRUE(create_stream({0, true, 0}, stream).ok());
    ASSERT_TRUE(allocate_storage(default_pool(), {kDLCUDA, 0}, kBytes, stream, storage).ok());
    device = static_cast<unsigned char*>(storage->data);
    fake.reset();
  }
  void TearDown() override {
    if (!fake) return;
    fake.reset();
    release(storage);
    recycle_stream({0, true, 0}, stream);
    EXPECT_EQ(fake.context_depth(), 1);
  }
  static std::vector<unsigned char> counted(std::size_t n) {
    std::vector<unsigned char> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<unsigned char>(i * 31 + (i >> 16));
    return out;
  }
  std::vector<unsigned char> on_device(std::size_t n) { return {device, device + n}; }

  static constexpr std::size_t kBytes = 3 * kStagedBytes + 12345;
  StreamHandle stream = 0;
  Storage* storage = nullptr;
  unsigned char* device = nullptr;
};

TEST_F(Transfer, every_size_arrives_both_ways_and_the_source_may_go_at_once) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, kStagedBytes - 1, kStagedBytes, kBytes}) {
    std::vector<unsigned char> source = counted(bytes);
    EXPECT_OK(copy_to_device(device, source.data(), bytes, 0, stream, false));
    std::fill(source.begin(), source.end(), 0xee);
    std::vector<unsigned char> back(bytes);
    EXPECT_OK(copy_to_host(back.data(), device, bytes, 0, stream, false));
    EXPECT_EQ(back, counted(bytes)) << bytes;
  }
  EXPECT_EQ(fake.count("memcpy_htod bytes=1048576"), 4 + 12);  // only the staged ones go in chunks
}

TEST_F(Transfer, copies_are_behind_earlier_work_and_before_later_work) {
  const std::vector<unsigned char> source = counted(kBytes);
  fake.queue_work(device, kBytes, stream, 7);
  EXPECT_OK(copy_to_device(device, source.data(), kBytes, 0, stream, false));
  std::vector<unsigned char> back(kBytes);
  fake.queue_work(device, 100, stream, 9);
  EXPECT_OK(copy_to_host(back.data(), device, kBytes, 0, stream, true));
  EXPECT_EQ(back[99], 9);
  EXPECT_TRUE(std::equal(back.begin() + 100, back.end(), source.begin() + 100));
}

TEST_F(Transfer, pinned_memory_is_not_staged_and_not_waited_for) {
  auto* pinned = static_cast<unsigned char*>(fake.alloc_host(kBytes));
  EXPECT_TRUE(is_pinned(pinned));
  EXPECT_FALSE(is_pinned(&pinned));
  std::fill(pinned, pinned + kBytes, static_cast<unsigned char>(5));
  EXPECT_OK(copy_to_device(device, pinned, kBytes, 0, stream, false));
  EXPECT_EQ(fake.count("memcpy_htod"), 1);
  EXPECT_NE(on_device(1)[0], 5) << "it is queued, no more";
  EXPECT_OK(copy_to_device(device, pinned, kBytes, 0, stream, true));
  EXPECT_EQ(on_device(1)[0], 5);
  fake.queue_work(device, 10, stream, 6);
  EXPECT_OK(copy_to_host(pinned, device, kBytes, 0, stream, false));
  EXPECT_EQ(pinned[0], 5);
  EXPECT_OK(copy_to_host(pinned, device, kBytes, 0, stream, true));
  EXPECT_EQ(pinned[0], 6);
  fake.free(pinned);
}

TEST_F(Transfer, a_capture_takes_pinned_memory_only) {
  auto* pinned = static_cast<unsigned char*>(fake.alloc_host(16));
  unsigned char pageable[16] = {};
  EXPECT_OK(begin_capture(stream, cuda::kCaptureModeRelaxed));
  EXPECT_ERROR(copy_to_device(device, pageable, 16, 0, stream, false), ErrorCode::kRefused, "page-locked");
  EXPECT_ERROR(copy_to_host(pinned, device, 16, 0, stream, true), ErrorCode::kRefused, "graph");
  EXPECT_OK(copy_to_host(pinned, device, 16, 0, stream, false));
  CUgraph graph = nullptr;
  EXPECT_OK(end_capture(stream, graph));
  EXPECT_EQ(fake.count("end_capture"), 1);
  EXPECT_EQ(driver().graph_destroy(graph), 0);
  fake.free(pinned);
}

TEST_F(Transfer, failures_are_reported_and_the_next_copy_works) {
  const std::vector<unsigned char> source = counted(kBytes);
  EXPECT_OK(copy_to_device(device, source.data(), kBytes, 0, stream, false));
  fake.set_sticky(700);
  std::vector<unsigned char> back(kBytes);
  EXPECT_ERROR(copy_to_host(back.data(), device, kBytes, 0, stream, true), ErrorCode::kCuda, "sticky");
  fake.reset();
  std::vector<std::thread> threads;  // several at once: one after the other
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      std::vector<unsigned char> mine(kBytes);
      EXPECT_OK(copy_to_host(mine.data(), device, kBytes, 0, stream, true));
      EXPECT_EQ(mine, source);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_ERROR(copy_to_host(back.data(), device, 1, 99, stream, true), ErrorCode::kMalformed, "cuda:99");
  EXPECT_OK(copy_to_host(nullptr, nullptr, 0, 99, 0, true));
}

// What the GIL is in Python.
std::mutex tensor_lock;
struct WithTensorLock {
  WithTensorLock() {
    hooks().unlock = [] {
      tensor_lock.unlock();
      return static_cast<void*>(&tensor_lock);
    };
    hooks().relock = [](void*) { tensor_lock.lock(); };
  }
  WithTensorLock(const WithTensorLock&) = delete;
  WithTensorLock& operator=(const WithTensorLock&) = delete;
  ~WithTensorLock() { hooks() = {}; }
};

TEST_F(Transfer, threads_copy_one_array_while_another_asks_when_it_is_ready) {
  constexpr std::int64_t kShape[] = {10000};
  constexpr DLDevice kHost{kDLCPU, 0}, kDevice{kDLCUDA, 0};
  Tensor array;
  EXPECT_OK(make_array(array, DType::kUInt8, kShape, kDevice));
  std::fill_n(static_cast<unsigned char*>(array.dl.data), kShape[0], static_cast<unsigned char>(8));
  const WithTensorLock locked;
  std::vector<StreamHandle> streams{fake.new_stream(), fake.new_stream(), fake.new_stream()};
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < 2; ++k)
    threads.emplace_back([&, k] {
      cuda::set_current_stream(0, streams[k]);
      for (int turn = 0; turn < 20; ++turn) {
        const std::lock_guard lock(tensor_lock);
        Tensor host;
        EXPECT_OK(copy_to(array, kHost, host));
        EXPECT_EQ(static_cast<const unsigned char*>(host.dl.data)[kShape[0] - 1], 8);
      }
    });
  threads.emplace_back([&] {  // as extension modules do, without the lock
    for (int turn = 0; turn < 20; ++turn) EXPECT_OK(cuda::order(streams[2], array.ready, 0));
  });
  for (std::thread& thread : threads) thread.join();
  const Ordering last = array.ready.settled();
  EXPECT_TRUE(last == Ordering::on_stream(streams[0]) || last == Ordering::on_stream(streams[1]));
}

TEST_F(Transfer, streams_are_given_again_and_never_destroyed) {
  StreamHandle one = 0, two = 0, three = 0;
  EXPECT_OK(create_stream({1, true, -2}, one));
  EXPECT_TRUE(is_lasting_stream(one));
  EXPECT_FALSE(is_lasting_stream(fake.new_stream()));
  recycle_stream({1, true, -2}, one);
  EXPECT_OK(create_stream({1, true, 0}, two));
  EXPECT_OK(create_stream({1, true, -2}, three));
  EXPECT_NE(one, two);
  EXPECT_EQ(one, three);
  EXPECT_ERROR(create_stream({77, false, 0}, one), ErrorCode::kMalformed, "cuda:77");
}

// Without peer access the driver takes the bytes through the host.
TEST_F(Transfer, copies_between_devices_open_peer_access_once) {
  constexpr std::int64_t kShape[] = {100};
  Tensor source, copied, back, descriptor;
  EXPECT_OK(make_array(source, DType::kUInt8, kShape, {kDLCUDA, 1}));
  EXPECT_OK(copy_to(source, {kDLCUDA, 0}, copied));
  EXPECT_OK(cuda::copy_to_device(source, {kDLCUDA, 0}, 0, descriptor));
  EXPECT_OK(cuda::ensure_peer(0, 1));
  EXPECT_OK(cuda::ensure_peer(0, 0));
  EXPECT_EQ(fake.count("enable_peer device=0 peer=1"), 1);
  ::setenv("FAKE_CUDA_NO_PEERS", "1", 1);
  EXPECT_ERROR(cuda::ensure_peer(1, 0), ErrorCode::kMalformed, "no peer access");
  EXPECT_OK(copy_to(copied, {kDLCUDA, 1}, back));
  ::unsetenv("FAKE_CUDA_NO_PEERS");
  EXPECT_EQ(fake.count("enable_peer device=1 peer=0"), 0);
  EXPECT_ERROR(cuda::ensure_peer(0, 5), ErrorCode::kMalformed, "cuda:5");
  EXPECT_EQ(fake.count("memcpy_peer"), 3);
}

}  // namespace
}  // namespace dlbridge::nd
