// The caching pool against the fake driver: what is reused when, behind what, and what happens when nothing is left.
#include "ndarray/runtime/async_pool.h"
#include "ndarray/runtime/caching_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>

#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/streams.h"
#include "tests/cpp/nd/with_fake_driver.h"

namespace dlbridge::nd {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

// A piece of pool memory, released when it goes.
class Piece {
 public:
  Piece() = default;
  Piece(Piece&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  Piece& operator=(Piece&& other) noexcept {
    reset();
    storage_ = std::exchange(other.storage_, nullptr);
    return *this;
  }
  ~Piece() { reset(); }
  void reset() {
    if (storage_ != nullptr) release(std::exchange(storage_, nullptr));
  }
  Storage* operator->() const { return storage_; }
  char* data() const { return static_cast<char*>(storage_->data); }

  Storage* storage_ = nullptr;
};

class Pool : public test::WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    if (!fake) return;
    ASSERT_TRUE(create_stream({0, true, 0}, first).ok());
    ASSERT_TRUE(create_stream({0, true, 0}, second).ok());
    live_before = fake.live_bytes();
    fake.reset();
  }
  void TearDown() override {
    if (!fake) return;
    fake.reset();
    pool.on(0).free_all_blocks();
    EXPECT_EQ(pool.on(0).statistics().used_bytes, 0u);
    EXPECT_EQ(pool.on(0).statistics().total_bytes, 0u);
    EXPECT_EQ(fake.live_bytes(), live_before);
    recycle_stream({0, true, 0}, first);
    recycle_stream({0, true, 0}, second);
    hooks() = {};
  }

  Status try_take(std::size_t bytes, StreamHandle stream, Piece& out, int device = 0) {
    Storage* storage = nullptr;
    DLBRIDGE_TRY(allocate_storage(pool, {kDLCUDA, device}, bytes, stream, storage));
    out.reset();
    out.storage_ = storage;
    return {};
  }
  Piece take(std::size_t bytes, StreamHandle stream) {
    Piece out;
    EXPECT_OK(try_take(bytes, stream, out));
    return out;
  }
  PoolStatistics statistics() { return pool.on(0).statistics(); }
  int blocking_calls() const {
    return fake.count("stream_synchronize") + fake.count("event_synchronize") + fake.count("ctx_synchronize");
  }

  // A pool is forever: a storage may name it.
  static CachingPool& new_pool(MemoryKind kind) {
    static auto* const kept = new std::vector<CachingPool*>;  // reachable at exit: no leak
    return *kept->emplace_back(new CachingPool(kind));
  }

  CachingPool& pool = new_pool(MemoryKind::kDevice);
  StreamHandle first = 0, second = 0;
  std::size_t live_before = 0;
};

TEST_F(Pool, the_same_stream_gets_its_memory_back_at_once_and_without_the_driver) {
  char* where[3];
  for (char*& at : where) {
    Piece piece = take(1000, first);
    at = piece.data();
    fake.queue_work(at, 1000, first);
  }
  EXPECT_EQ(where[0], where[1]);
  EXPECT_EQ(where[0], where[2]);
  EXPECT_EQ(fake.count("alloc bytes=2097152"), 1);
  EXPECT_EQ(fake.count("event_record") + fake.count("stream_wait") + blocking_calls(), 0);
  EXPECT_EQ(statistics().hits, 2u);
}

TEST_F(Pool, small_blocks_share_a_segment_and_neighbours_merge) {
  Piece a = take(1, first), b = take(512, first), c = take(513, first);
  EXPECT_EQ(b.data() - a.data(), 512);
  EXPECT_EQ(c.data() - b.data(), 512);
  EXPECT_EQ(statistics().used_bytes, 512u + 512u + 1024u);
  EXPECT_EQ(statistics().total_bytes, 2 * kMiB);
  EXPECT_EQ(statistics().free_blocks, 1u);
  a.reset();
  c.reset();  // joins the free rest behind it
  EXPECT_EQ(statistics().free_blocks, 2u);
  b.reset();  // joins both sides
  EXPECT_EQ(statistics().free_blocks, 1u);
  EXPECT_EQ(take(kMiB, first)->bytes, kMiB);
  EXPECT_EQ(statistics().total_bytes, 2 * kMiB);
}

TEST_F(Pool, large_blocks_are_split_only_where_the_rest_is_of_use) {
  take(10 * kMiB, first).reset();
  Piece a = take(3 * kMiB, first);
  Piece b = take(6 * kMiB, first);  // leaves 1 MiB, which no large request can use: stays whole
  EXPECT_EQ(b.data() - a.data(), static_cast<std::ptrdiff_t>(3 * kMiB));
  EXPECT_EQ(statistics().total_bytes, 10 * kMiB);
  EXPECT_EQ(statistics().used_bytes, 10 * kMiB);
  Piece odd = take(kMiB + 1, first);
  EXPECT_EQ(statistics().total_bytes, 12 * kMiB);
}

TEST_F(Pool, the_smallest_block_that_fits_is_taken) {
  Piece sizes[] = {take(40 * kMiB, first), take(8 * kMiB, first), take(20 * kMiB, first)};
  char* eight = sizes[1].data();
  for (Piece& piece : sizes) piece.reset();
  EXPECT_EQ(take(7 * kMiB, first).data(), eight);
}

TEST_F(Pool, a_large_block_of_another_stream_comes_behind_an_event) {
  Piece piece = take(4 * kMiB, first);
  char* at = piece.data();
  fake.queue_work(at, 16, first, 7);
  piece.reset();
  Piece again = take(4 * kMiB, second);
  EXPECT_EQ(again.data(), at);
  EXPECT_EQ(fake.count("event_record"), 1);
  EXPECT_EQ(fake.count("stream_wait"), 1);
  EXPECT_EQ(blocking_calls(), 0);
  fake.queue_work(at, 16, second, 9);
  fake.synchronize();
  EXPECT_EQ(at[0], 9);  // the second stream's write came last
  EXPECT_EQ(statistics().crossed, 1u);
}

TEST_F(Pool, an_idle_streams_block_needs_no_event_and_a_small_one_of_a_busy_stream_is_left_alone) {
  Piece piece = take(1000, first);
  char* at = piece.data();
  fake.queue_work(at, 16, first);
  piece.reset();
  Piece other = take(1000, second);
  EXPECT_NE(other.data(), at);
  EXPECT_EQ(statistics().grown, 2u);
  fake.synchronize();
  Piece large = take(kMiB, second);
  EXPECT_EQ(statistics().grown, 2u) << "the second stream's own segment serves it";
  Piece third = take(kMiB, second);
  EXPECT_GE(third.data(), at);  // its own is full: the idle first stream's
  EXPECT_LT(third.data(), at + 2 * kMiB);
  EXPECT_EQ(fake.count("event_record") + fake.count("stream_wait"), 0);
}

TEST_F(Pool, memory_used_by_two_streams_belongs_to_the_one_that_used_it_last) {
  Piece piece = take(4 * kMiB, first);
  char* at = piece.data();
  EXPECT_OK(acquire(*piece.storage_, second));
  EXPECT_EQ(fake.count("stream_wait"), 1);
  fake.queue_work(at, 16, second);
  piece.reset();
  EXPECT_EQ(take(4 * kMiB, second).data(), at);
  EXPECT_EQ(fake.count("stream_wait"), 1) << "the second stream has it at once";
}

TEST_F(Pool, a_stream_of_somebody_elses_is_asked_when_memory_is_released_and_never_again) {
  const StreamHandle foreign = fake.new_stream();
  Piece piece = take(1000, foreign);
  char* at = piece.data();
  fake.queue_work(at, 16, foreign, 7);
  piece.reset();
  EXPECT_EQ(fake.count("event_record"), 2);  // on the foreign stream, and on the relay behind it
  Piece again = take(1000, foreign);
  EXPECT_EQ(again.data(), at) << "the same handle waits, for it may be another stream by now";
  again.reset();
  fake.reset();
  ASSERT_EQ(driver().stream_destroy(cuda::detail::as_stream(foreign)), 0);
  Piece elsewhere = take(1000, first);
  EXPECT_EQ(elsewhere.data(), at);
  EXPECT_EQ(fake.count("event_record"), 0);
}

TEST_F(Pool, what_per_thread_streams_used_waits_for_the_legacy_stream) {
  Piece piece = take(1000, kPerThreadStream);
  char* at = piece.data();
  piece.reset();
  EXPECT_EQ(take(1000, kPerThreadStream).data(), at);
  EXPECT_EQ(fake.count("event_record"), 1);
  EXPECT_EQ(fake.count("stream_wait stream=per_thread0"), 1);
  EXPECT_EQ(take(1000, kLegacyStream).data(), at) << "work on the legacy stream is behind every thread's";
}

TEST_F(Pool, every_allocation_may_fail_and_works_again) {
  Piece cached = take(8 * kMiB, first);
  cached.reset();
  for (const int n : {0, 1}) {  // 0: the trim makes room; 1: fails again behind it
    fake.reset();
    fake.fail_alloc_after(0);
    Piece piece;
    if (n == 0) {
      EXPECT_OK(try_take(20 * kMiB, first, piece));
      EXPECT_EQ(fake.count("free"), 1) << "the cached segment went back first";
    } else {
      pool.on(0).set_limit(statistics().total_bytes);
      EXPECT_ERROR(try_take(32 * kMiB, first, piece), ErrorCode::kOutOfMemory, "33554432 bytes of device memory");
      pool.on(0).set_limit(0);
      EXPECT_OK(try_take(32 * kMiB, first, piece));
    }
  }
  Piece piece;
  EXPECT_ERROR(try_take(std::size_t{1} << 50, first, piece), ErrorCode::kOutOfMemory, "are not available on cuda:0");
  EXPECT_ERROR(try_take(~std::size_t{0}, first, piece), ErrorCode::kOutOfMemory, "limit none");
}

TEST_F(Pool, the_limit_counts_what_the_driver_gave_and_the_collector_makes_room) {
  pool.on(0).set_limit(8 * kMiB);
  EXPECT_EQ(pool.on(0).limit(), 8 * kMiB);
  static Piece garbage;
  static int collections;
  collections = 0;
  garbage = take(6 * kMiB, first);
  Piece piece;
  EXPECT_ERROR(try_take(6 * kMiB, first, piece), ErrorCode::kOutOfMemory, "limit 8388608");
  hooks().collect_garbage = [] {
    ++collections;
    garbage.reset();
  };
  EXPECT_OK(try_take(7 * kMiB, first, piece));
  EXPECT_EQ(collections, 1);
  EXPECT_EQ(statistics().total_bytes, 8 * kMiB);
}

TEST_F(Pool, at_the_limit_the_pieces_of_all_streams_are_put_together) {
  pool.on(0).set_limit(12 * kMiB);
  take(12 * kMiB, first).reset();
  Piece a = take(6 * kMiB, first), b = take(6 * kMiB, first);
  char* begin = a.data();
  EXPECT_OK(acquire(*b.storage_, second));
  fake.queue_work(begin, 16, first);
  fake.queue_work(b.data(), 16, second);
  a.reset();
  b.reset();
  EXPECT_EQ(statistics().free_blocks, 2u);
  EXPECT_EQ(take(12 * kMiB, second).data(), begin);
  EXPECT_EQ(blocking_calls(), 0);
  pool.on(0).set_limit(0);
}

TEST_F(Pool, free_all_blocks_takes_one_stream_or_all_and_leaves_what_is_used) {
  Piece used = take(1000, first);
  take(4 * kMiB, first).reset();
  Piece halves[] = {take(2 * kMiB, first), take(2 * kMiB, first)};  // a segment free in two streams' lists
  EXPECT_OK(acquire(*halves[0].storage_, second));
  for (Piece& half : halves) half.reset();
  EXPECT_EQ(statistics().free_blocks, 3u);
  pool.on(0).free_all_blocks(first);
  EXPECT_EQ(statistics().total_bytes, 6 * kMiB);
  pool.on(0).free_all_blocks();
  EXPECT_EQ(statistics().total_bytes, 2 * kMiB);
  take(4 * kMiB, first).reset();
  Piece elsewhere = take(4 * kMiB, first);
  EXPECT_OK(acquire(*elsewhere.storage_, second));
  fake.queue_work(elsewhere.data(), 16, second);
  elsewhere.reset();
  pool.on(0).free_all_blocks(first);
  EXPECT_EQ(statistics().total_bytes, 6 * kMiB);
  pool.on(0).free_all_blocks();
  EXPECT_EQ(statistics().total_bytes, 2 * kMiB);
  EXPECT_EQ(statistics().peak_total_bytes, 6 * kMiB);
  pool.on(0).reset_peaks();
  EXPECT_EQ(statistics().peak_total_bytes, 2 * kMiB);
}

TEST_F(Pool, a_graphs_memory_is_its_own_until_it_is_forgotten) {
  take(1000, first).reset();
  EXPECT_OK(begin_capture(first, cuda::kCaptureModeRelaxed));
  const std::uint64_t capture = *capture_of(first);
  Piece temporary = take(1000, first);
  char* inside = temporary.data();
  temporary.reset();
  EXPECT_EQ(take(1000, first).data(), inside) << "within the capture it is reused";
  Piece result = take(2000, first);
  CUgraph graph = nullptr;
  EXPECT_OK(end_capture(first, graph));
  EXPECT_EQ(open_captures(), 0);
  result.reset();
  Piece after = take(kMiB, first), more = take(kMiB / 2, first);
  EXPECT_FALSE(after.data() <= inside && inside < after.data() + kMiB);
  EXPECT_EQ(statistics().grown, 2u);
  forget_capture(0, capture, first);
  EXPECT_EQ(take(kMiB, first).data(), inside);
  EXPECT_EQ(driver().graph_destroy(graph), 0);
}

TEST_F(Pool, a_fork_gives_a_clear_error_and_a_release_touches_nothing) {
  Piece piece = take(1000, first);
  const pid_t child = ::fork();
  if (child == 0) {
    Piece other;
    const Status status = try_take(1000, second, other);
    const bool ok = !status.ok() && status.message().find("forked") != std::string::npos;
    piece.reset();
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Pool, random_use_from_two_threads_never_gives_memory_twice) {
  std::mutex mutex;
  std::map<char*, std::size_t> live;
  const auto work = [&](unsigned seed, StreamHandle stream) {
    fake.select_device(0);
    std::mt19937 random(seed);
    std::vector<Piece> pieces;
    for (int i = 0; i < 1500; ++i) {
      if (pieces.size() < 24 && random() % 3 != 0) {
        const std::size_t bytes = random() % 4 == 0 ? kMiB + random() % (6 * kMiB) : 1 + random() % (200 * kKiB);
        Piece piece = take(bytes, stream);
        const std::lock_guard lock(mutex);
        const auto next = live.lower_bound(piece.data());
        EXPECT_TRUE(next == live.end() || next->first >= piece.data() + bytes);
        EXPECT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= piece.data());
        live.emplace(piece.data(), bytes);
        pieces.push_back(std::move(piece));
      } else if (!pieces.empty()) {
        std::swap(pieces[random() % pieces.size()], pieces.back());
        {
          const std::lock_guard lock(mutex);
          live.erase(pieces.back().data());
        }
        pieces.pop_back();
      }
    }
    const std::lock_guard lock(mutex);
    for (const Piece& piece : pieces) live.erase(piece.data());
    pieces.clear();
  };
  std::thread other(work, 1, first);
  work(2, second);
  other.join();
}

TEST_F(Pool, managed_and_pinned_memory_say_what_they_are) {
  for (const MemoryKind kind : {MemoryKind::kManaged, MemoryKind::kPinned}) {
    CachingPool& other = new_pool(kind);
    Storage* storage = nullptr;
    EXPECT_OK(allocate_storage(other, {kDLCUDA, 1}, 100, kind == MemoryKind::kPinned ? 0 : first, storage));
    EXPECT_EQ(storage->device.device_type, info(kind).device_type);
    EXPECT_EQ(storage->device.device_id, 1);
    release(storage);
    EXPECT_OK(allocate_storage(other, {kDLCUDA, 1}, 100, 0, storage));
    release(storage);
    EXPECT_EQ(other.on(1).statistics().grown, 1u);
    other.on(1).free_all_blocks();
  }
  EXPECT_EQ(fake.count("host_free"), 1);
}

TEST_F(Pool, the_drivers_own_pool_frees_in_stream_order) {
  static AsyncPool async(true);
  Storage* storage = nullptr;
  EXPECT_OK(allocate_storage(async, {kDLCUDA, 0}, 1000, first, storage));
  EXPECT_OK(acquire(*storage, second));
  release(storage);
  EXPECT_EQ(fake.count("pool_create"), 1);
  EXPECT_EQ(fake.count("free_async"), 1);
  fake.fail_alloc_after(0);
  EXPECT_OK(allocate_storage(async, {kDLCUDA, 0}, 1000, first, storage));
  EXPECT_EQ(fake.count("pool_trim"), 1);
  EXPECT_OK(begin_capture(second, cuda::kCaptureModeRelaxed));
  Storage* none = nullptr;
  EXPECT_ERROR(allocate_storage(async, {kDLCUDA, 0}, 1000, second, none), ErrorCode::kRefused, "graph");
  EXPECT_OK(acquire(*storage, second));
  release(storage);
  CUgraph graph = nullptr;
  EXPECT_OK(end_capture(second, graph));
  EXPECT_EQ(fake.count("free_async"), 1);
  EXPECT_OK(allocate_storage(async, {kDLCUDA, 0}, 1000, first, storage));
  EXPECT_EQ(fake.count("free_async"), 2) << "what the capture released came later";
  release(storage);
  EXPECT_OK(async.free_all_blocks(0));
  EXPECT_EQ(driver().graph_destroy(graph), 0);
}

}  // namespace
}  // namespace dlbridge::nd
