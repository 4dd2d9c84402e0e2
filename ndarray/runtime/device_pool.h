// The caching pool of one device: memory is reused in the order of streams, without waiting for the device.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dlbridge/errors.h"
#include "ndarray/runtime/pool_blocks.h"
#include "ndarray/runtime/storage.h"
#include "ndarray/runtime/upstream.h"

namespace dlbridge::nd {

struct PoolStatistics {
  std::size_t used_bytes = 0;   // handed out, rounded up to the pool's blocks
  std::size_t total_bytes = 0;  // taken from the driver
  std::size_t peak_used_bytes = 0;
  std::size_t peak_total_bytes = 0;
  std::size_t free_blocks = 0;
  std::size_t hits = 0;     // served by a free block of the same stream
  std::size_t crossed = 0;  // served by a block that another stream had used
  std::size_t grown = 0;    // served by a new segment
};

// A request is rounded up to 512 bytes. Up to 1 MiB it is cut from segments of 2 MiB; above, from segments of its own,
// rounded up to 2 MiB, which are split when what is left serves another large request. All members: any thread.
class DevicePool {
 public:
  DevicePool(MemoryKind kind, int device) noexcept : kind_(kind), device_(device) { idle_.kind = Arena::Kind::kIdle; }
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // As MemoryResource says. A hit costs a lock and a list operation.
  Status allocate(Storage& storage);
  void release(Storage& storage) noexcept;

  // Gives the segments that are wholly free back to the driver: all, or those last used on one stream. Blocks.
  void free_all_blocks(std::optional<StreamHandle> stream = std::nullopt);
  // The same from now on with each segment as soon as it is free: nobody is left to ask for the cache.
  void retire();
  PoolStatistics statistics();
  void reset_peaks();
  std::size_t limit();                // of total_bytes; 0: none
  void set_limit(std::size_t bytes);  // what is in use beyond it stays

  // The graph with this capture id is gone; its last launch was on `stream`. Its memory is ordinary again.
  void forget_capture(std::uint64_t capture, StreamHandle stream) noexcept;

 private:
  static constexpr std::size_t kSmallLimit = std::size_t{1} << 20;
  static constexpr std::size_t kSegment = std::size_t{2} << 20;

  struct Request {
    StreamHandle stream;
    std::size_t bytes;  // rounded
    bool is_small;
    std::optional<std::uint64_t> capture;
  };

  // With the lock held.
  Arena& arena_of(StreamHandle stream);
  Arena& arena_of_graph(std::uint64_t capture);
  Arena& home_of(const Block& block, StreamHandle stream, const std::optional<std::uint64_t>& capture);
  Block* take(Arena& from, const Request& request);
  Block* take_from_own(const Request& request);
  Block* take_idle(const Request& request);
  Block* take_behind_event(const Request& request);
  Block* hand_out(Block& block, std::size_t bytes, bool is_small);
  void put(Block& block, Arena& arena) noexcept;
  Block* merge(Block& left, Block& right) noexcept;
  void move_all(Arena& from, Arena& to) noexcept;
  bool order_behind(StreamHandle stream, Arena& arena) noexcept;
  bool has_finished(Arena& arena) noexcept;
  void note_release(Arena& arena) noexcept;
  void detach_free_segments(std::optional<StreamHandle> stream, std::vector<void*>& out);
  void finish(Storage& storage, Block& block) noexcept;

  bool give_back(const Storage& storage, Block& block);

  // Without it.
  std::optional<std::uint64_t> capture_on(StreamHandle stream, bool is_lasting) noexcept;
  Status allocate_slowly(Storage& storage, std::size_t bytes);
  Block* grow(const Request& request, CUresult& result, bool& over_limit);
  Status make_room(const Request& request, Block*& out);
  Status out_of_memory(std::size_t asked, bool over_limit);

  const MemoryKind kind_;
  const int device_;
  std::mutex mutex_;
  std::unordered_map<StreamHandle, Arena*> arenas_;
  std::unordered_map<std::uint64_t, Arena*> graphs_;
  Arena* last_ = nullptr;  // of the stream asked for last: the one map entry that matters
  Arena idle_;
  BlockNodes nodes_;
  PoolStatistics statistics_;
  std::size_t limit_ = 0;
  bool is_retired_ = false;
};

}  // namespace dlbridge::nd
