// The bookkeeping of the caching pool: blocks, and their free lists by size. No driver, no lock.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "dlbridge/stream.h"

namespace dlbridge::nd {

struct Arena;

// A piece of a segment. Neighbours that are free in one arena are always merged.
struct Block {
  std::byte* start = nullptr;
  std::size_t bytes = 0;
  Block* before = nullptr;  // neighbours in the segment
  Block* after = nullptr;
  Block* next = nullptr;  // in the free list
  Block* previous = nullptr;
  Arena* arena = nullptr;  // free: whose list it is in; used: whose it came from
  bool is_free = false;
  bool is_small = false;  // cut from a segment for small blocks
};

// Sizes in units of 512 bytes: exact below 16 KiB, 32 steps to each power of two above. Two bit searches find the
// smallest class that fits.
class FreeList {
 public:
  static constexpr std::size_t kUnit = 512;
  static constexpr int kSteps = 32;
  static constexpr int kStepBits = 5;
  static constexpr int kClasses = 34 * kSteps;  // up to 2^47 bytes
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 46;

  void push(Block& block) noexcept {
    const int c = class_of(block.bytes);
    Block*& head = heads_[static_cast<std::size_t>(c)];
    block.previous = nullptr;
    block.next = head;
    if (head != nullptr) head->previous = &block;
    head = &block;
    filled_[static_cast<std::size_t>(c / 64)] |= std::uint64_t{1} << (c % 64);
    ++count_;
  }

  void remove(Block& block) noexcept {
    if (block.next != nullptr) block.next->previous = block.previous;
    if (block.previous != nullptr) {
      block.previous->next = block.next;
    } else {
      const int c = class_of(block.bytes);
      heads_[static_cast<std::size_t>(c)] = block.next;
      if (block.next == nullptr) filled_[static_cast<std::size_t>(c / 64)] &= ~(std::uint64_t{1} << (c % 64));
    }
    --count_;
  }

  // A block of at least `bytes`, as small as a short search finds; null where none is large enough.
  Block* find(std::size_t bytes) const noexcept {
    const int c = class_of(bytes);
    if (Block* found = smallest_in(c, bytes)) return found;
    const int larger = next_filled(c + 1);
    return larger < kClasses ? smallest_in(larger, bytes) : nullptr;
  }

  std::size_t count() const noexcept { return count_; }

  // Calls visit(block), which may remove the block.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (int c = next_filled(0); c < kClasses; c = next_filled(c + 1)) {
      for (Block* block = heads_[static_cast<std::size_t>(c)]; block != nullptr;) {
        Block* next = block->next;
        visit(*block);
        block = next;
      }
    }
  }

 private:
  static constexpr int kSearched = 32;

  static int class_of(std::size_t bytes) noexcept {
    const std::size_t units = bytes / kUnit;
    if (units < kSteps) return static_cast<int>(units);
    const int power = static_cast<int>(std::bit_width(units)) - 1;
    const auto step = static_cast<int>((units >> (power - kStepBits)) & (kSteps - 1));
    return (power - kStepBits + 1) * kSteps + step;
  }

  Block* smallest_in(int c, std::size_t bytes) const noexcept {
    Block* best = nullptr;
    int left = kSearched;
    Block* block = heads_[static_cast<std::size_t>(c)];
    for (; block != nullptr && left > 0; block = block->next, --left) {
      if (block->bytes < bytes) continue;
      if (block->bytes == bytes) return block;
      if (best == nullptr || block->bytes < best->bytes) best = block;
    }
    return best;
  }

  int next_filled(int c) const noexcept {
    for (int word = c / 64; word < kWords; ++word, c = word * 64) {
      const std::uint64_t bits = filled_[static_cast<std::size_t>(word)] >> (c % 64);
      if (bits != 0) return c + std::countr_zero(bits);
    }
    return kClasses;
  }

  static constexpr int kWords = kClasses / 64;
  static_assert(kClasses % 64 == 0);
  std::array<Block*, kClasses> heads_{};
  std::array<std::uint64_t, kWords> filled_{};
  std::size_t count_ = 0;
};

// Free blocks that may be reused at once by work that comes behind one point: the work queued on a stream so far, an
// event, or the work of one graph.
struct Arena {
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  enum class Kind : std::uint8_t {
    kIdle,     // nothing uses the memory any more
    kOwn,      // ordered by `stream`, which lives forever
    kForeign,  // ordered by `event`: the stream may be destroyed behind our back, and its handle given to another
    kGraph,    // memory that a captured graph writes whenever it is launched
    kGone,     // of a graph that is no more; kept while blocks that came from it are in use
  };
  Kind kind = Kind::kOwn;
  bool joins_threads = false;  // legacy only: holds what per-thread streams used, so that only an event covers it
  StreamHandle stream = 0;
  std::uintptr_t event = 0;     // kForeign
  std::uint64_t capture = 0;    // kGraph: the capture's id
  std::size_t used_blocks = 0;  // kGraph, kGone: handed out and not back yet
  FreeList small;
  FreeList large;

  FreeList& list(bool is_small) noexcept { return is_small ? small : large; }
};

// Block descriptors, made in batches and reused.
class BlockNodes {
 public:
  BlockNodes() = default;
  BlockNodes(const BlockNodes&) = delete;
  BlockNodes& operator=(const BlockNodes&) = delete;
  ~BlockNodes() {
    for (Block* batch : batches_) delete[] batch;
  }

  // Null where there is no memory for one more.
  Block* take() noexcept {
    if (idle_ == nullptr) refill();
    Block* node = idle_;
    if (node == nullptr) return nullptr;
    idle_ = node->next;
    *node = Block{};
    return node;
  }
  void give(Block* node) noexcept {
    node->next = idle_;
    idle_ = node;
  }

 private:
  static constexpr int kBatch = 128;
  void refill() noexcept {
    try {
      batches_.reserve(batches_.size() + 1);
      auto* batch = new Block[kBatch];
      batches_.push_back(batch);
      for (int i = 0; i < kBatch; ++i) give(&batch[i]);
    } catch (const std::bad_alloc&) {
    }
  }

  std::vector<Block*> batches_;
  Block* idle_ = nullptr;
};

}  // namespace dlbridge::nd
