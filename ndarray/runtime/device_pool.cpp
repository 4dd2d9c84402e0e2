#include "ndarray/runtime/device_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "dlbridge/device_memory.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/streams.h"

namespace dlbridge::nd {

namespace {
constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}
}  // namespace

// ---- the two that are called for every array

Status DevicePool::allocate(Storage& storage) {
  if (storage.bytes > FreeList::kMaxBytes) [[unlikely]]
    return out_of_memory(storage.bytes, false);
  const std::size_t bytes = round_up(storage.bytes, FreeList::kUnit);
  const bool is_small = bytes <= kSmallLimit;
  {
    const std::lock_guard lock(mutex_);
    Arena* arena = last_;
    if (arena != nullptr && arena->stream == storage.stream && open_captures() == 0) [[likely]] {
      if (Block* block = arena->list(is_small).find(bytes)) [[likely]] {
        ++statistics_.hits;
        finish(storage, *hand_out(*block, bytes, is_small));
        return {};
      }
    }
  }
  return allocate_slowly(storage, bytes);
}

void DevicePool::release(Storage& storage) noexcept {
  if (life() == Life::kForked) [[unlikely]]
    return;  // another thread may have held the lock when the process forked
  Block& block = *static_cast<Block*>(storage.block);
  try {
    if (give_back(storage, block)) [[unlikely]]
      free_all_blocks();
  } catch (...) {  // no memory for a new free list: the block stays taken
  }
}

// True where what is free has to go to the driver at once.
bool DevicePool::give_back(const Storage& storage, Block& block) {
  const std::lock_guard lock(mutex_);
  Arena* arena = last_;
  if (arena == nullptr || arena->stream != storage.stream || open_captures() != 0 ||
      block.arena->kind >= Arena::Kind::kGraph) [[unlikely]] {
    const bool is_lasting = arena_of(storage.stream).kind != Arena::Kind::kForeign;
    arena = &home_of(block, storage.stream, capture_on(storage.stream, is_lasting));
    if (arena->kind == Arena::Kind::kForeign) note_release(*arena);
  }
  statistics_.used_bytes -= block.bytes;
  put(block, *arena);
  return is_retired_;
}

// ---- a miss

std::optional<std::uint64_t> DevicePool::capture_on(StreamHandle stream, bool is_lasting) noexcept {
  if (stream == 0 || !is_running() || (is_lasting && open_captures() == 0)) return std::nullopt;
  return capture_of(stream);
}

Status DevicePool::allocate_slowly(Storage& storage, std::size_t bytes) {
  DLBRIDGE_TRY(require_runtime());
  Request request{storage.stream, bytes, bytes <= kSmallLimit, std::nullopt};
  Block* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Arena& arena = arena_of(storage.stream);
    request.capture = capture_on(storage.stream, arena.kind != Arena::Kind::kForeign);
    if (arena.kind == Arena::Kind::kOwn && storage.stream != kPerThreadStream) last_ = &arena;
    block = take_from_own(request);
    if (block != nullptr) ++statistics_.hits;
    if (block == nullptr) block = take_idle(request);
    // A large block is worth a wait for the other stream; for a small one a new segment costs less.
    if (block == nullptr && !request.is_small) block = take_behind_event(request);
  }
  if (block == nullptr) {
    CUcontext context = nullptr;
    DLBRIDGE_TRY(cuda::primary_context(device_, context));  // the device may have no room for one
    CUresult result = cuda::kSuccess;
    bool over_limit = false;
    block = grow(request, result, over_limit);
    if (block == nullptr && (over_limit || result == cuda::kOutOfMemoryResult)) {
      DLBRIDGE_TRY(make_room(request, block));
      if (block == nullptr) return out_of_memory(storage.bytes, over_limit);
    }
    if (block == nullptr) return cuda::check(result, upstream_function(kind_));
  }
  const std::lock_guard lock(mutex_);
  finish(storage, *block);
  return {};
}

void DevicePool::finish(Storage& storage, Block& block) noexcept {
  storage.data = block.start;
  storage.block = &block;
  storage.device.device_type = info(kind_).device_type;
  statistics_.used_bytes += block.bytes;
  statistics_.peak_used_bytes = std::max(statistics_.peak_used_bytes, statistics_.used_bytes);
}

Block* DevicePool::take(Arena& from, const Request& request) {
  Block* block = from.list(request.is_small).find(request.bytes);
  return block != nullptr ? hand_out(*block, request.bytes, request.is_small) : nullptr;
}

Block* DevicePool::take_from_own(const Request& request) {
  Arena& own = request.capture ? arena_of_graph(*request.capture) : arena_of(request.stream);
  // What is called "the per-thread stream" is another stream on each thread: it shares the legacy stream's memory,
  // which is behind all of them.
  const bool waits = own.kind == Arena::Kind::kForeign || request.stream == kPerThreadStream;
  if (own.list(request.is_small).find(request.bytes) == nullptr) return nullptr;
  if (waits && !request.capture && !order_behind(request.stream, own)) return nullptr;
  return take(own, request);
}

Block* DevicePool::take_idle(const Request& request) {
  if (request.capture) return nullptr;  // a graph's memory comes from its own segments alone
  if (Block* block = take(idle_, request)) return block;
  for (const auto& [stream, arena] : arenas_) {
    if (arena->list(request.is_small).find(request.bytes) == nullptr || !has_finished(*arena)) continue;
    ++statistics_.crossed;
    return take(*arena, request);
  }
  return nullptr;
}

Block* DevicePool::take_behind_event(const Request& request) {
  if (request.capture) return nullptr;
  std::vector<std::pair<std::size_t, Arena*>> candidates;
  for (const auto& [stream, arena] : arenas_)
    if (const Block* block = arena->list(request.is_small).find(request.bytes))
      candidates.emplace_back(block->bytes, arena);
  std::sort(candidates.begin(), candidates.end());
  for (const auto& [bytes, arena] : candidates) {
    if (!order_behind(request.stream, *arena)) continue;
    ++statistics_.crossed;
    return take(*arena, request);
  }
  return nullptr;
}

Block* DevicePool::grow(const Request& request, CUresult& result, bool& over_limit) {
  const std::size_t bytes = request.is_small ? kSegment : round_up(request.bytes, kSegment);
  Block* whole = nullptr;
  {
    const std::lock_guard lock(mutex_);
    over_limit = limit_ != 0 && (bytes > limit_ || statistics_.total_bytes > limit_ - bytes);
    if (over_limit || (whole = nodes_.take()) == nullptr) {
      result = cuda::kOutOfMemoryResult;
      return nullptr;
    }
    statistics_.total_bytes += bytes;  // before the driver gives it, so that threads keep to the limit together
  }
  void* data = nullptr;
  result = allocate_upstream(kind_, device_, bytes, data);
  const std::lock_guard lock(mutex_);
  if (result != cuda::kSuccess) {
    statistics_.total_bytes -= bytes;
    nodes_.give(whole);
    return nullptr;
  }
  ++statistics_.grown;
  statistics_.peak_total_bytes = std::max(statistics_.peak_total_bytes, statistics_.total_bytes);
  whole->start = static_cast<std::byte*>(data);
  whole->bytes = bytes;
  whole->is_small = request.is_small;
  put(*whole, request.capture ? arena_of_graph(*request.capture) : arena_of(request.stream));
  return hand_out(*whole, request.bytes, request.is_small);
}

// Twice, the second time after a garbage collection: all that other streams have left, behind their work; then what
// is wholly free goes back to the driver, and the request to it once more. No lock is held while anything may run.
Status DevicePool::make_room(const Request& request, Block*& out) {
  for (int round = 0; round < 2; ++round) {
    if (round == 1 && !collect_garbage()) break;
    std::vector<void*> segments;
    {
      const std::lock_guard lock(mutex_);
      out = take_from_own(request);
      if (out == nullptr) out = take_behind_event(request);
      if (out == nullptr && !request.capture && request.stream != 0) {
        Arena& own = arena_of(request.stream);
        for (const auto& [stream, arena] : arenas_)
          if (arena != &own && order_behind(request.stream, *arena)) move_all(*arena, own);
        move_all(idle_, own);
        if (own.kind == Arena::Kind::kForeign) note_release(own);
        out = take(own, request);
      }
      if (out != nullptr) return {};
      detach_free_segments(std::nullopt, segments);
    }
    {
      const Unlocked unlocked;
      for (void* segment : segments) free_upstream(kind_, device_, segment);
      CUmemoryPool driver_pool = nullptr;  // the bridge's copies, and other libraries'
      if (driver().device_get_default_mem_pool(&driver_pool, device_) == cuda::kSuccess)
        static_cast<void>(driver().mem_pool_trim_to(driver_pool, 0));
    }
    CUresult result = cuda::kSuccess;
    bool over_limit = false;
    out = grow(request, result, over_limit);
    if (out != nullptr) return {};
    if (!over_limit && result != cuda::kOutOfMemoryResult) return cuda::check(result, upstream_function(kind_));
  }
  return {};
}

Status DevicePool::out_of_memory(std::size_t asked, bool over_limit) {
  const PoolStatistics now = statistics();
  const std::size_t most = limit();
  std::string message = std::to_string(asked) + " bytes of " + info(kind_).name +
                        " memory are not available on cuda:" + std::to_string(device_) + ": the pool has " +
                        std::to_string(now.used_bytes) + " bytes in use and " +
                        std::to_string(now.total_bytes - now.used_bytes) + " free in pieces that do not fit, limit " +
                        (most != 0 ? std::to_string(most) : "none");
  std::size_t free = 0;
  std::size_t total = 0;
  cuda::DeviceGuard guard;
  if (guard.enter(device_).ok() && driver().mem_get_info(&free, &total) == cuda::kSuccess)
    message += "; the device has " + std::to_string(free) + " of " + std::to_string(total) + " bytes free";
  message +=
      over_limit ? ". Free arrays, or raise the limit with set_limit()" : ". Free arrays, here or in other libraries";
  return {ErrorCode::kOutOfMemory, std::move(message)};
}

// ---- for the user

void DevicePool::free_all_blocks(std::optional<StreamHandle> stream) {
  if (!is_running()) return;
  std::vector<void*> segments;
  {
    const std::lock_guard lock(mutex_);
    detach_free_segments(stream, segments);
  }
  const Unlocked unlocked;
  for (void* segment : segments) free_upstream(kind_, device_, segment);
}

void DevicePool::retire() {
  {
    const std::lock_guard lock(mutex_);
    is_retired_ = true;
  }
  free_all_blocks();
}

PoolStatistics DevicePool::statistics() {
  const std::lock_guard lock(mutex_);
  PoolStatistics out = statistics_;
  const auto count = [&](const Arena& arena) { out.free_blocks += arena.small.count() + arena.large.count(); };
  count(idle_);
  for (const auto& [stream, arena] : arenas_) count(*arena);
  for (const auto& [id, arena] : graphs_) count(*arena);
  return out;
}

void DevicePool::reset_peaks() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_used_bytes = statistics_.used_bytes;
  statistics_.peak_total_bytes = statistics_.total_bytes;
}

std::size_t DevicePool::limit() {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void DevicePool::set_limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

}  // namespace dlbridge::nd
