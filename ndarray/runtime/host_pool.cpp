#include "ndarray/runtime/host_pool.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

namespace dlbridge::nd {

namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// From here on an array lies in huge pages: the first touch of 256 MiB in pages of 4 KiB takes longer than the copy
// that fills it.
constexpr std::size_t kHuge = std::size_t{4} << 20;
// Of blocks that are larger than this, the C library gives back to the system what is free at the end of its heap, or
// maps them anew each time: with two results alive, every other operation touches new pages then, which took 4 to 12 ms
// for `x * x + 1` of 8 MB (0.5 ms by kept blocks).
constexpr std::size_t kSmall = std::size_t{64} << 10;
constexpr std::size_t kMostKept = std::size_t{256} << 20;  // bytes of all blocks that wait
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeeps = false;  // what is used after it was freed is to be found
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif
#else
constexpr bool kKeeps = true;
#endif

// A hint for the huge pages that lie in the block whole: not every kernel has them.
void advise(void* data, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last = (begin + bytes) / kHugePage * kHugePage;
  if (first < last) static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
}

void* new_block(std::size_t bytes) noexcept {
  const std::size_t padded = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  void* data = nullptr;
  if (padded < bytes || ::posix_memalign(&data, bytes >= kHuge ? kHugePage : kCacheLine, padded) != 0) return nullptr;
  if (bytes >= kHuge) advise(data, padded);
  return data;
}

struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// The blocks that wait, the newest last. Nobody waits for its lock, not even a process that was forked while another
// thread held it: who does not get it goes to the C library.
class KeptBlocks {
 public:
  // The newest block that holds so many bytes and at most an eighth more; null where there is none.
  void* take(std::size_t bytes) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;
    for (std::size_t k = count_; k-- > 0;)
      if (blocks_[k].bytes >= bytes && blocks_[k].bytes - bytes <= bytes / 8) return remove(k);
    return nullptr;
  }

  // False where the caller must free it. Frees the oldest ones that there is no room for beside it.
  bool keep(void* data) noexcept {
    const Block block{data, ::malloc_usable_size(data)};
    std::array<void*, kMostBlocks> old{};
    std::size_t olds = 0;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock || block.bytes > kMostKept) return false;
      while (count_ == kMostBlocks || bytes_ + block.bytes > kMostKept) old[olds++] = remove(0);
      blocks_[count_++] = block;
      bytes_ += block.bytes;
    }
    for (std::size_t k = 0; k < olds; ++k) std::free(old[k]);
    return true;
  }

  // Whether there was anything to give back.
  bool clear() noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || count_ == 0) return false;
    while (count_ > 0) std::free(remove(count_ - 1));
    return true;
  }

 private:
  static constexpr std::size_t kMostBlocks = 32;

  void* remove(std::size_t position) noexcept {
    const Block block = blocks_[position];
    std::copy(blocks_.begin() + position + 1, blocks_.begin() + count_, blocks_.begin() + position);
    --count_;
    bytes_ -= block.bytes;
    return block.data;
  }

  std::mutex mutex_;
  std::array<Block, kMostBlocks> blocks_;
  std::size_t count_ = 0, bytes_ = 0;
};

// The blocks of small arrays that wait, those of about one size together; a list of each a thread. By posix_memalign()
// a copy of 16 numbers takes 150 ns, by these 90.
class SmallBlocks {
 public:
  SmallBlocks() noexcept = default;
  SmallBlocks(const SmallBlocks&) = delete;
  SmallBlocks& operator=(const SmallBlocks&) = delete;
  ~SmallBlocks() {
    for (List& list : lists_)
      while (list.count > 0) std::free(list.blocks[--list.count]);
    is_open_ = false;  // what is freed after this thread's lists goes to the C library
  }

  // What a block for so many bytes has, so that it serves all that its list does.
  static std::size_t size_for(std::size_t bytes) noexcept {
    const std::size_t step = step_of(bytes);
    return (bytes + step - 1) / step * step;
  }
  void* take(std::size_t bytes) noexcept {
    List& list = list_of(bytes);
    return list.count > 0 ? list.blocks[--list.count] : nullptr;
  }
  // False where the caller must free it.
  bool keep(void* data, std::size_t bytes) noexcept {
    List& list = list_of(bytes);
    if (!is_open_ || list.count == std::clamp<std::size_t>(kListBytes / bytes, 2, kMost)) return false;
    list.blocks[list.count++] = data;
    return true;
  }

 private:
  static constexpr std::size_t kMost = 16;                          // blocks of a list,
  static constexpr std::size_t kListBytes = std::size_t{64} << 10;  // and about as many bytes
  static constexpr std::size_t kSteps = 8;                          // sizes from a power of two to the next
  struct List {
    std::array<void*, kMost> blocks;
    std::size_t count = 0;
  };

  static std::size_t step_of(std::size_t bytes) noexcept {
    return std::max(std::bit_ceil(bytes) / (2 * kSteps), kCacheLine);
  }
  List& list_of(std::size_t bytes) noexcept {
    const std::size_t step = step_of(bytes), power = static_cast<std::size_t>(std::countr_zero(step / kCacheLine));
    return lists_[power * kSteps + (bytes - 1) / step];
  }

  std::array<List, (std::bit_width(kSmall / (2 * kSteps * kCacheLine)) + 1) * kSteps> lists_{};
  bool is_open_ = true;
};

SmallBlocks& small_blocks() noexcept {
  thread_local SmallBlocks blocks;
  return blocks;
}

class HostPool final : public MemoryResource {
 public:
  Status allocate(Storage& storage) override {
    storage.device = {kDLCPU, 0};  // not page-locked, whatever kind of host memory the device names
    storage.data = !kKeeps                   ? nullptr
                   : storage.bytes <= kSmall ? small_blocks().take(storage.bytes)
                                             : blocks_.take(storage.bytes);
    const std::size_t size = kKeeps && storage.bytes <= kSmall ? SmallBlocks::size_for(storage.bytes) : storage.bytes;
    if (storage.data == nullptr) storage.data = new_block(size);
    if (storage.data == nullptr && blocks_.clear()) storage.data = new_block(size);
    if (storage.data == nullptr)
      return {ErrorCode::kOutOfMemory,
              "the host has no " + std::to_string(storage.bytes) + " bytes for an array. Free other arrays first"};
    return {};
  }

  void release(Storage& storage) noexcept override {
    const bool is_kept = kKeeps && (storage.bytes <= kSmall ? small_blocks().keep(storage.data, storage.bytes)
                                                            : blocks_.keep(storage.data));
    if (!is_kept) std::free(storage.data);
  }

 private:
  KeptBlocks blocks_;
};

}  // namespace

MemoryResource& host_pool() noexcept {
  static auto* pool = new HostPool;
  return *pool;
}

}  // namespace dlbridge::nd
