// The CUDA side on a real GPU, through the driver alone: races with their negative control, graph capture, and what
// the calls cost. Skipped without a driver and under the fake.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/device_copy.h"

namespace dlbridge {
namespace {

using cuda::CUdeviceptr;
using cuda::CUresult;
using cuda::CUstream;

constexpr DLDevice kCpu{kDLCPU, 0};
constexpr DLDevice kCuda0{kDLCUDA, 0};
constexpr std::int64_t kBig = std::int64_t{8} << 30;  // a memset of this takes milliseconds

template <class Function>
Function symbol(const char* name) {
  return reinterpret_cast<Function>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name));
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::available()) GTEST_SKIP() << cuda::unavailable_reason();
    if (symbol<void*>("fake_cuda_log") != nullptr) GTEST_SKIP() << "libcuda.so.1 is the fake";
    ASSERT_TRUE(guard_.enter(0).ok());
    memset_ = symbol<decltype(memset_)>("cuMemsetD8Async");
  }
  StreamHandle stream() {
    CUstream out = nullptr;
    EXPECT_EQ(cuda::functions().stream_create(&out, cuda::kStreamNonBlocking), 0);
    return reinterpret_cast<StreamHandle>(out);
  }
  Tensor device_bytes(std::int64_t count, StreamHandle on = kLegacyStream) {
    Tensor out;
    const Status status = cuda::allocate_device(to_dl(DType::kUInt8), 1, &count, kCuda0, on, out);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.message());
    return out;
  }
  void fill(const Tensor& t, unsigned char value, StreamHandle on) {
    ASSERT_EQ(memset_(reinterpret_cast<CUdeviceptr>(t.dl.data), value, static_cast<std::size_t>(t.size),
                      reinterpret_cast<CUstream>(on)),
              0);
  }
  void finish() { ASSERT_EQ(symbol<CUresult (*)()>("cuCtxSynchronize")(), 0); }

  CUresult (*memset_)(CUdeviceptr, unsigned char, std::size_t, CUstream) = nullptr;
  cuda::DeviceGuard guard_;
};

// A slow kernel on the producer's stream, then the one that writes the data; what the consumer's copy sees.
TEST_F(Gpu, a_slow_producer_is_waited_for_and_without_the_token_it_is_not) {
  Tensor big = device_bytes(kBig, kPerThreadStream);
  Tensor small = device_bytes(64, kPerThreadStream);
  for (const bool wait : {true, false}) {
    const StreamHandle producer = stream(), consumer = stream();
    fill(small, 0, producer);
    finish();
    for (int i = 0; i < 4; ++i) fill(big, 1, producer);
    fill(small, 7, producer);
    small.ready = wait ? Ordering::on_stream(producer) : Ordering::ready();
    Tensor host, device, back;
    ASSERT_TRUE(cuda::copy_to_device(small, kCuda0, consumer, device).ok());
    ASSERT_TRUE(cuda::copy_to_device(device, kCpu, 0, back).ok());
    ASSERT_TRUE(cuda::copy_to_device(small, kCpu, 0, host).ok());
    const int expected = wait ? 7 : 0;
    EXPECT_EQ(static_cast<unsigned char*>(back.dl.data)[63], expected) << "wait " << wait;
    if (wait) {
      EXPECT_EQ(static_cast<unsigned char*>(host.dl.data)[63], 7);
    }
    finish();
  }
}

TEST_F(Gpu, order_does_not_block_the_host) {
  Tensor big = device_bytes(kBig, kPerThreadStream);
  const StreamHandle producer = stream(), consumer = stream();
  for (int i = 0; i < 8; ++i) fill(big, 1, producer);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(cuda::order(consumer, Ordering::on_stream(producer), 0).ok());
  const auto queued = std::chrono::steady_clock::now();
  ASSERT_TRUE(cuda::synchronize(Ordering::on_stream(consumer), 0).ok());
  const auto done = std::chrono::steady_clock::now();
  EXPECT_LT(queued - start, std::chrono::milliseconds(2));
  EXPECT_GT(done - queued, std::chrono::milliseconds(5)) << "the consumer did not wait";
}

TEST_F(Gpu, a_graph_capture_refuses_the_wait_and_survives_it) {
  const auto begin = symbol<CUresult (*)(CUstream, int)>("cuStreamBeginCapture_v2");
  const auto end = symbol<CUresult (*)(CUstream, void**)>("cuStreamEndCapture");
  Tensor small = device_bytes(64, kPerThreadStream);
  const StreamHandle capturing = stream(), other = stream();
  ASSERT_EQ(begin(reinterpret_cast<CUstream>(capturing), 0), 0);  // the global mode, the strictest
  EXPECT_TRUE(cuda::order(capturing, Ordering::ready(), 0).ok());
  EXPECT_TRUE(cuda::order(capturing, Ordering::on_stream(capturing), 0).ok());
  for (const StreamHandle producer : {other, kLegacyStream}) {
    const Status status = cuda::order(capturing, Ordering::on_stream(producer), 0);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kRefused) << status.message();
  }
  const Status backwards = cuda::order(other, Ordering::on_stream(capturing), 0);
  ASSERT_FALSE(backwards.ok());
  EXPECT_EQ(backwards.code(), ErrorCode::kRefused) << backwards.message();
  DLDevice device{};
  EXPECT_TRUE(cuda::device_of_pointer(small.dl.data, device).ok());
  {
    Tensor plain = device_bytes(64, kPerThreadStream);
  }  // cuMemAlloc and cuMemFree in the middle of it
  fill(small, 3, capturing);
  void* graph = nullptr;
  EXPECT_EQ(end(reinterpret_cast<CUstream>(capturing), &graph), 0) << "the capture was invalidated";
  EXPECT_NE(graph, nullptr);
}

template <class Body>
void measure(const char* what, int rounds, Body body) {
  for (int i = 0; i < rounds / 10 + 1; ++i) body();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) body();
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
  std::printf("[  TIME    ] %-44s %10.1f ns\n", what, passed.count() / rounds);
}

TEST_F(Gpu, prints_what_the_calls_cost) {
  const StreamHandle a = stream(), b = stream();
  Tensor small = device_bytes(4096);
  std::vector<unsigned char> bytes(4096);
  Tensor host;
  host.dl.data = bytes.data();
  const std::int64_t extent = 4096;
  ASSERT_TRUE(build_layout(host, 1, &extent, nullptr, StrideUnit::kElements).ok());
  DLDevice device{};
  Tensor out;
  const auto run = [](const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); };
  measure("order, same stream", 100000, [&] { run(cuda::order(a, Ordering::on_stream(a), 0)); });
  measure("order, other stream", 10000, [&] { run(cuda::order(b, Ordering::on_stream(a), 0)); });
  measure("device_of_pointer", 100000, [&] { run(cuda::device_of_pointer(small.dl.data, device)); });
  measure("guard, device current", 100000, [&] {
    cuda::DeviceGuard guard;
    run(guard.enter(0));
  });
  measure("allocate + free 4 KiB, legacy stream", 2000, [&] { out = device_bytes(4096); });
  measure("allocate + free 4 KiB, other stream", 200, [&] { out = device_bytes(4096, a); });
  measure("copy 4 KiB host to device", 1000, [&] { run(cuda::copy_to_device(host, kCuda0, 0, out)); });
  measure("copy 4 KiB device to device", 1000, [&] { run(cuda::copy_to_device(small, kCuda0, 0, out)); });
  measure("copy 4 KiB device to host", 1000, [&] { run(cuda::copy_to_device(small, kCpu, 0, out)); });
}

}  // namespace
}  // namespace dlbridge
