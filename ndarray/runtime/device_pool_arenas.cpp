// The free lists of a DevicePool: who may take a block, and behind what. All with the pool's lock held.
#include <memory>

#include "dlbridge/cuda_events.h"
#include "dlbridge/device_memory.h"
#include "ndarray/runtime/device_pool.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/streams.h"

namespace dlbridge::nd {

Arena& DevicePool::arena_of(StreamHandle stream) {
  if (stream == 0) return idle_;
  const StreamHandle key = stream == kPerThreadStream ? kLegacyStream : stream;
  Arena*& slot = arenas_[key];
  if (slot == nullptr) {
    auto made = std::make_unique<Arena>();
    made->kind = is_lasting_stream(key) ? Arena::Kind::kOwn : Arena::Kind::kForeign;
    made->stream = key;
    slot = made.release();
  }
  return *slot;
}

Arena& DevicePool::arena_of_graph(std::uint64_t capture) {
  Arena*& slot = graphs_[capture];
  if (slot == nullptr) {
    auto made = std::make_unique<Arena>();
    made->kind = Arena::Kind::kGraph;
    made->capture = capture;
    slot = made.release();
  }
  return *slot;
}

// Where a block goes that is released. What a graph has used is written again at each launch, so nobody else gets it.
Arena& DevicePool::home_of(const Block& block, StreamHandle stream, const std::optional<std::uint64_t>& capture) {
  if (block.arena->kind == Arena::Kind::kGraph) {
    --block.arena->used_blocks;
    return *block.arena;
  }
  if (block.arena->kind == Arena::Kind::kGone && --block.arena->used_blocks == 0) delete block.arena;
  if (capture) return arena_of_graph(*capture);
  Arena& arena = arena_of(stream);
  if (stream == kPerThreadStream) arena.joins_threads = true;
  return arena;
}

Block* DevicePool::hand_out(Block& block, std::size_t bytes, bool is_small) {
  Arena& arena = *block.arena;
  FreeList& list = arena.list(is_small);
  list.remove(block);
  block.is_free = false;
  if (arena.kind == Arena::Kind::kGraph) ++arena.used_blocks;
  const std::size_t rest = block.bytes - bytes;
  if (rest == 0 || (!is_small && rest <= kSmallLimit)) return &block;
  Block* tail = nodes_.take();
  if (tail == nullptr) return &block;  // no memory to describe what is left: it goes along
  tail->start = block.start + bytes;
  tail->bytes = rest;
  tail->before = &block;
  tail->after = block.after;
  tail->arena = &arena;
  tail->is_small = is_small;
  tail->is_free = true;
  if (block.after != nullptr) block.after->before = tail;
  block.after = tail;
  block.bytes = bytes;
  list.push(*tail);
  return &block;
}

// The right one of two neighbours joins the left one, which is returned.
Block* DevicePool::merge(Block& left, Block& right) noexcept {
  left.bytes += right.bytes;
  left.after = right.after;
  if (right.after != nullptr) right.after->before = &left;
  nodes_.give(&right);
  return &left;
}

void DevicePool::put(Block& block, Arena& arena) noexcept {
  Block* whole = &block;
  FreeList& list = arena.list(block.is_small);
  if (Block* before = block.before; before != nullptr && before->is_free && before->arena == &arena) {
    list.remove(*before);
    whole = merge(*before, block);
  }
  if (Block* after = whole->after; after != nullptr && after->is_free && after->arena == &arena) {
    list.remove(*after);
    merge(*whole, *after);
  }
  whole->arena = &arena;
  whole->is_free = true;
  list.push(*whole);
}

void DevicePool::move_all(Arena& from, Arena& to) noexcept {
  if (&from == &to) return;
  for (FreeList* list : {&from.small, &from.large}) {
    list->for_each([&](Block& block) {
      list->remove(block);
      put(block, to);  // merges with blocks of `to` alone: the visit's next block is still one of `from`
    });
  }
}

// Makes the stream wait for whatever may still use the arena's blocks. False where that cannot be said, as inside a
// capture, or for a host that does not wait.
bool DevicePool::order_behind(StreamHandle stream, Arena& arena) noexcept {
  if (arena.kind == Arena::Kind::kIdle) return true;
  if (stream == 0 || !is_running()) return false;
  try {
    const cuda::detail::RelaxedCapture relaxed;
    if (arena.kind == Arena::Kind::kForeign)
      return arena.event == 0 || cuda::order(stream, Ordering::at_event(arena.event), device_).ok();
    return cuda::order(stream, Ordering::on_stream(arena.stream), device_).ok();
  } catch (...) {
    return false;
  }
}

// True when the device has done all that used the arena's blocks. Asks; never waits.
bool DevicePool::has_finished(Arena& arena) noexcept {
  if (!is_running() || arena.joins_threads) return false;
  const cuda::detail::RelaxedCapture relaxed;
  if (arena.kind == Arena::Kind::kForeign)
    return arena.event == 0 || driver().event_query(cuda::detail::as_event(arena.event)) == cuda::kSuccess;
  cuda::DeviceGuard guard;
  try {
    cuda::detail::Capture capture = cuda::detail::Capture::kNone;
    if (!guard.enter(device_).ok() || !cuda::detail::capture_state(arena.stream, capture).ok()) return false;
    return capture == cuda::detail::Capture::kNone &&
           driver().stream_query(cuda::detail::as_stream(arena.stream)) == cuda::kSuccess;
  } catch (...) {
    return false;
  }
}

// A block used last on a stream of somebody else's, which is alive now and may not be later: the relay stream waits for
// it, and an event there stands for it and all earlier ones.
void DevicePool::note_release(Arena& arena) noexcept {
  if (!is_running()) return;
  bool noted = false;
  try {
    const cuda::detail::RelaxedCapture relaxed;
    StreamHandle relay = 0;
    cuda::DeviceGuard guard;
    CUevent event = cuda::detail::as_event(arena.event);
    noted = guard.enter(device_).ok() && cuda::relay_stream(device_, relay).ok() &&
            cuda::order(relay, Ordering::on_stream(arena.stream), device_).ok() &&
            (event != nullptr || cuda::detail::take_event(device_, event).ok());
    if (event != nullptr) arena.event = reinterpret_cast<std::uintptr_t>(event);
    noted = noted && cuda::functions().event_record(event, cuda::detail::as_stream(relay)) == cuda::kSuccess;
  } catch (...) {
    noted = false;
  }
  // The driver refuses that stream (its context is gone, or it failed): only the end of all work is safe.
  if (!noted) static_cast<void>(driver().ctx_synchronize());
}

namespace {

// True when every block of the segment that `first` begins is free, be it in lists of several streams.
bool is_all_free(const Block& first, std::optional<StreamHandle> stream) noexcept {
  for (const Block* block = &first; block != nullptr; block = block->after)
    if (!block->is_free || block->arena->kind == Arena::Kind::kGraph || (stream && block->arena->stream != *stream))
      return false;
  return true;
}

}  // namespace

// Takes the segments out of the lists. The driver waits for the device before it frees, whatever work is pending.
void DevicePool::detach_free_segments(std::optional<StreamHandle> stream, std::vector<void*>& out) {
  std::vector<Block*> firsts;
  const auto collect = [&](Arena& arena) {
    for (FreeList* list : {&arena.small, &arena.large})
      list->for_each([&](Block& block) {
        if (block.before == nullptr && is_all_free(block, stream)) firsts.push_back(&block);
      });
  };
  collect(idle_);
  for (const auto& [handle, arena] : arenas_) collect(*arena);
  out.reserve(out.size() + firsts.size());  // from here on nothing fails
  for (Block* first : firsts) {
    out.push_back(first->start);
    for (Block* block = first; block != nullptr;) {
      Block* next = block->after;
      block->arena->list(block->is_small).remove(*block);
      statistics_.total_bytes -= block->bytes;
      nodes_.give(block);
      block = next;
    }
  }
}

void DevicePool::forget_capture(std::uint64_t capture, StreamHandle stream) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(capture);
    if (found == graphs_.end()) return;
    Arena* graph = found->second;
    Arena& target = arena_of(stream);
    move_all(*graph, target);
    if (target.kind == Arena::Kind::kForeign) note_release(target);
    graphs_.erase(found);
    graph->kind = Arena::Kind::kGone;
    if (graph->used_blocks == 0) delete graph;
  } catch (...) {  // no memory for a free list: the graph's blocks stay its own
  }
}

}  // namespace dlbridge::nd
