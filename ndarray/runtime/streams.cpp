#include "ndarray/runtime/streams.h"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/cuda_driver.h"
#include "ndarray/runtime/caching_pool.h"
#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::pair<StreamKind, StreamHandle>> idle;
};
Registry& registry() noexcept {
  static auto* made = new Registry;  // lives on for owners that are released last of all
  return *made;
}

std::atomic<int>& capture_count() noexcept {
  static std::atomic<int> count{0};
  return count;
}

bool pop_idle(const StreamKind& kind, StreamHandle& out) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (auto it = r.idle.begin(); it != r.idle.end(); ++it) {
    if (!(it->first == kind)) continue;
    out = it->second;
    r.idle.erase(it);
    return true;
  }
  return false;
}

// Ends a capture that nobody can end any more: while it is open, nothing that the legacy stream awaits can be queued.
bool abandon_capture(const StreamKind& kind, StreamHandle stream) {
  const std::optional<std::uint64_t> capture = capture_of(stream);
  if (!capture) return true;
  CUgraph graph = nullptr;
  static_cast<void>(end_capture(stream, graph));  // an invalidated one ends with an error
  if (graph != nullptr) static_cast<void>(driver().graph_destroy(graph));
  if (capture_of(stream)) return false;  // of another thread's: only that one may end it
  forget_capture(kind.device, *capture, stream);
  return true;
}

}  // namespace

Status create_stream(const StreamKind& kind, StreamHandle& out) {
  DLBRIDGE_TRY(require_runtime());
  if (pop_idle(kind, out)) return {};
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(kind.device));
  CUstream made = nullptr;
  const unsigned flags = kind.non_blocking ? cuda::kStreamNonBlocking : 0;
  if (kind.priority == 0) DLBRIDGE_TRY(cuda::check(cuda::functions().stream_create(&made, flags), "cuStreamCreate"));
  else
    DLBRIDGE_TRY(
        cuda::check(driver().stream_create_with_priority(&made, flags, kind.priority), "cuStreamCreateWithPriority"));
  out = reinterpret_cast<StreamHandle>(made);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.idle.reserve(r.idle.size() + 1);
  cuda::note_lasting_stream(out);
  return {};
}

void recycle_stream(const StreamKind& kind, StreamHandle stream) noexcept {
  if (!is_running()) return;
  try {
    if (!abandon_capture(kind, stream)) return;  // it would spoil its next user's work
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    r.idle.emplace_back(kind, stream);
  } catch (...) {  // out of memory: the stream is never used again
  }
}

bool is_lasting_stream(StreamHandle stream) noexcept {
  return stream <= kPerThreadStream || cuda::is_lasting_stream(stream);
}

std::optional<std::uint64_t> capture_of(StreamHandle stream) noexcept {
  int status = 0;
  std::uint64_t id = 0;
  const auto info = cuda::functions().stream_get_capture_info;
  const CUresult result = info != nullptr
                              ? info(cuda::detail::as_stream(stream), &status, &id, nullptr, nullptr, nullptr)
                              : cuda::functions().stream_is_capturing(cuda::detail::as_stream(stream), &status);
  if (result != cuda::kSuccess || status == 0) return std::nullopt;
  return id;
}

int open_captures() noexcept { return capture_count().load(std::memory_order_relaxed); }

Status begin_capture(StreamHandle stream, int mode) {
  DLBRIDGE_TRY(
      cuda::check(driver().stream_begin_capture(cuda::detail::as_stream(stream), mode), "cuStreamBeginCapture"));
  capture_count().fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status end_capture(StreamHandle stream, CUgraph& out) {
  const CUresult result = driver().stream_end_capture(cuda::detail::as_stream(stream), &out);
  // An invalidated capture ends, too, with an error; only "no capture here" leaves the count.
  if (result == cuda::kSuccess || cuda::detail::is_capture_error(result))
    capture_count().fetch_sub(1, std::memory_order_relaxed);
  return cuda::check(result, "cuStreamEndCapture");
}

}  // namespace dlbridge::nd
