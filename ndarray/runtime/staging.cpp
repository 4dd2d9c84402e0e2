#include "ndarray/runtime/staging.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "dlbridge/device_memory.h"
#include "ndarray/runtime/driver.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/streams.h"

namespace dlbridge::nd {

namespace {

// Measured on an H200's host of 16 cores with 256 MiB, to the device and back into memory that was there: eight threads
// 41.7 and 44.0 GB/s, with chunks of one MiB 34.2 and 39.9; four 32.9 and 28.9; one 9.2.
constexpr int kLanes = 8;
constexpr int kBuffers = 2;  // one is filled while the other is on the bus
constexpr std::size_t kChunk = std::size_t{4} << 20;
constexpr std::size_t kLeastChunk = std::size_t{1} << 20;

struct Buffer {
  std::byte* data = nullptr;
  CUevent done = nullptr;       // the bus has finished with it
  std::byte* target = nullptr;  // to the host: where it is to be emptied
  std::size_t bytes = 0;
};

// What one thread copies with: a stream of its own, so that the copies of all are on the bus together.
struct Lane {
  StreamHandle stream = 0;
  std::array<Buffer, kBuffers> buffers;
};

struct Job {
  Direction direction;
  std::byte* dst;
  const std::byte* src;
  std::size_t bytes;
  int device;
  std::size_t chunk;
  std::atomic<std::size_t> next{0};  // the first byte that no lane has taken
};

// Smaller chunks where there are not enough large ones to keep all lanes busy.
std::size_t chunk_for(std::size_t bytes) {
  return std::clamp(bytes / (kLanes * kBuffers) / kLeastChunk * kLeastChunk, kLeastChunk, kChunk);
}

// The lanes of one device, made on its first large copy and kept: page-locking costs milliseconds.
struct DeviceLanes {
  std::array<Lane, kLanes> lanes;
  CUevent begin = nullptr;
  bool ready = false;
};

[[gnu::cold]] Status out_of_page_locked() {
  return {ErrorCode::kOutOfMemory,
          std::to_string(kChunk) + " bytes of page-locked host memory are not available, and "
                                   "large copies go through it. Free page-locked memory, here or in other processes"};
}

Status make_buffer(Buffer& buffer) {
  void* data = nullptr;
  if (buffer.data == nullptr) {
    const CUresult result = driver().mem_host_alloc(&data, kChunk, kHostAllocPortable);
    if (result == cuda::kOutOfMemoryResult) [[unlikely]]
      return out_of_page_locked();
    DLBRIDGE_TRY(cuda::check(result, "cuMemHostAlloc"));
    buffer.data = static_cast<std::byte*>(data);
  }
  if (buffer.done != nullptr) return {};
  return cuda::check(cuda::functions().event_create(&buffer.done, cuda::kEventDisableTiming), "cuEventCreate");
}

// What a failure leaves half made is used by the next attempt.
Status make_lanes(int device, DeviceLanes& out) {
  const cuda::detail::RelaxedCapture relaxed;
  for (Lane& lane : out.lanes) {
    if (lane.stream == 0) DLBRIDGE_TRY(create_stream({device, true, 0}, lane.stream));
    for (Buffer& buffer : lane.buffers) DLBRIDGE_TRY(make_buffer(buffer));
  }
  if (out.begin == nullptr)
    DLBRIDGE_TRY(cuda::check(cuda::functions().event_create(&out.begin, cuda::kEventDisableTiming), "cuEventCreate"));
  out.ready = true;
  return {};
}

CUresult fill(const Job& job, std::size_t at, std::size_t bytes, const Lane& lane, Buffer& buffer) {
  const cuda::Functions& fn = cuda::functions();
  if (const CUresult result = fn.event_synchronize(buffer.done); result != cuda::kSuccess) return result;
  const CUstream stream = cuda::detail::as_stream(lane.stream);
  CUresult result;
  if (job.direction == Direction::kToDevice) {
    std::memcpy(buffer.data, job.src + at, bytes);
    result = fn.memcpy_htod_async(reinterpret_cast<CUdeviceptr>(job.dst + at), buffer.data, bytes, stream);
  } else {
    buffer.target = job.dst + at;
    buffer.bytes = bytes;
    result = fn.memcpy_dtoh_async(buffer.data, reinterpret_cast<CUdeviceptr>(job.src + at), bytes, stream);
  }
  return result == cuda::kSuccess ? fn.event_record(buffer.done, stream) : result;
}

CUresult drain(Buffer& buffer) {
  if (buffer.bytes == 0) return cuda::kSuccess;
  const CUresult result = cuda::functions().event_synchronize(buffer.done);
  if (result == cuda::kSuccess) std::memcpy(buffer.target, buffer.data, buffer.bytes);
  buffer.bytes = 0;
  return result;
}

// One thread's part: takes chunks until none is left. A failure ends the job for all.
CUresult run_lane(Job& job, Lane& lane) noexcept {
  const cuda::detail::RelaxedCapture relaxed;
  CUresult result = cuda::kSuccess;
  for (std::size_t turn = 0; result == cuda::kSuccess; ++turn) {
    Buffer& buffer = lane.buffers[turn % kBuffers];
    result = drain(buffer);
    const std::size_t at = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (result != cuda::kSuccess || at >= job.bytes) break;
    result = fill(job, at, std::min(job.chunk, job.bytes - at), lane, buffer);
  }
  if (result != cuda::kSuccess) job.next.store(job.bytes, std::memory_order_relaxed);
  for (Buffer& buffer : lane.buffers) {
    const CUresult drained = drain(buffer);
    if (result == cuda::kSuccess) result = drained;
  }
  return result;
}

// The threads beside the caller's own. They sleep between jobs, hold nothing then, and end with the process.
class Crew {
 public:
  // Runs `job` on all lanes, the first of them here. The first failure.
  CUresult run(Job& job, std::array<Lane, kLanes>& lanes) {
    const int helpers = start();
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      lanes_ = &lanes;
      result_ = cuda::kSuccess;
      running_ = helpers;
      ++round_;
    }
    wake_.notify_all();
    const CUresult own = run_lane(job, lanes[0]);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
    return own != cuda::kSuccess ? own : result_;
  }

 private:
  // How many there are; fewer than wanted where the system gives no more, and the others carry the load.
  int start() {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    const int wanted = static_cast<int>(std::min<unsigned>(kLanes, cores + 1)) - 1;
    try {
      for (; helpers_ < wanted; ++helpers_) std::thread(&Crew::serve, this, helpers_ + 1, round_).detach();
    } catch (const std::system_error&) {
    }
    return helpers_;
  }

  void serve(int lane, unsigned seen) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      Job& job = *job_;
      Lane& own = (*lanes_)[static_cast<std::size_t>(lane)];
      lock.unlock();
      CUresult result = cuda::kSuccess;
      {
        CUcontext context = nullptr;
        cuda::DeviceGuard guard;
        const bool entered = cuda::primary_context(job.device, context).ok() && guard.enter_context(context).ok();
        if (entered) result = run_lane(job, own);  // without a context the other lanes do it all
      }
      lock.lock();
      if (result_ == cuda::kSuccess) result_ = result;
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  Job* job_ = nullptr;
  std::array<Lane, kLanes>* lanes_ = nullptr;
  CUresult result_ = cuda::kSuccess;
  int helpers_ = 0;
  int running_ = 0;
  unsigned round_ = 0;
};

struct Staging {
  std::mutex mutex;  // one job at a time: two would share the bus
  Crew crew;
  std::array<DeviceLanes, cuda::kMaxDevices> devices;
};
Staging& staging() {
  static auto* made = new Staging;  // never destroyed: its threads sleep in it until the process ends
  return *made;
}

}  // namespace

Status copy_staged(Direction direction, void* dst, const void* src, std::size_t bytes, int device,
                   StreamHandle stream) {
  Staging& all = staging();
  const std::lock_guard lock(all.mutex);
  DeviceLanes& own = all.devices[static_cast<std::size_t>(device)];
  if (!own.ready) DLBRIDGE_TRY(make_lanes(device, own));
  const cuda::Functions& fn = cuda::functions();
  DLBRIDGE_TRY(cuda::check(fn.event_record(own.begin, cuda::detail::as_stream(stream)), "cuEventRecord"));
  for (Lane& lane : own.lanes)
    DLBRIDGE_TRY(
        cuda::check(fn.stream_wait_event(cuda::detail::as_stream(lane.stream), own.begin, 0), "cuStreamWaitEvent"));
  Job job{direction, static_cast<std::byte*>(dst), static_cast<const std::byte*>(src), bytes, device, chunk_for(bytes),
          {}};
  Status status = cuda::check(all.crew.run(job, own.lanes),
                              direction == Direction::kToDevice ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoHAsync");
  // Also after a failure: what other lanes have queued still writes.
  for (Lane& lane : own.lanes) {
    if (!status.ok()) {
      static_cast<void>(fn.stream_synchronize(cuda::detail::as_stream(lane.stream)));
      continue;
    }
    status = cuda::order(stream, Ordering::on_stream(lane.stream), device);
  }
  return status;
}

}  // namespace dlbridge::nd
