// Each allocation of the codec is made to fail in turn. An executable of its own, as it replaces
// the global operator new.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "dlbridge/dlpack_codec.h"
#include "tests/cpp/fixtures.h"

namespace {
int allocations_until_failure = -1;  // -1: none fails
}

// noinline: the compiler must not see through to malloc and free, and call the pair mismatched.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_until_failure == 0) throw std::bad_alloc();
  if (allocations_until_failure > 0) --allocations_until_failure;
  if (void* p = std::malloc(size != 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace dlbridge {
namespace {

// Runs `step` with the N-th allocation failing, N = 0, 1, …, until it needs no more; returns how many it needed.
template <class Step>
int fail_each_allocation(Step step) {
  for (int n = 0;; ++n) {
    bool failed = false;
    allocations_until_failure = n;
    try {
      step();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    allocations_until_failure = -1;
    if (!failed) return n;
  }
}

TEST(OutOfMemory, Fault26AFailedImportHasDeletedOnce) {
  const int needed = fail_each_allocation([] {
    const int allowed = std::exchange(allocations_until_failure, -1);  // the producer's own do not count
    test::VersionedProducer producer(std::vector<std::int64_t>(kInlineDims + 1, 1));
    allocations_until_failure = allowed;
    bool threw = false;
    {
      Tensor t;
      try {
        const Status status = import_managed(&producer.managed, t);
        EXPECT_TRUE(status.ok());
      } catch (const std::bad_alloc&) {
        threw = true;
        EXPECT_EQ(producer.deleted, 1);
        EXPECT_FALSE(t.owner);
      }
    }
    EXPECT_EQ(producer.deleted, 1);
    if (threw) throw std::bad_alloc();
  });
  EXPECT_EQ(needed, 1) << "only the dims of more than kInlineDims dimensions are on the heap";
}

TEST(OutOfMemory, Fault26AFailedErrorMessageStillDeletesOnce) {
  const int needed = fail_each_allocation([] {
    const int allowed = std::exchange(allocations_until_failure, -1);
    test::VersionedProducer producer;
    producer.managed.dl_tensor.dtype.lanes = 4;
    allocations_until_failure = allowed;
    Tensor t;
    try {
      const Status status = import_managed(&producer.managed, t);
      EXPECT_FALSE(status.ok());
      EXPECT_EQ(producer.deleted, 1);
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(producer.deleted, 1);
      throw;
    }
  });
  EXPECT_GT(needed, 0);
}

TEST(OutOfMemory, Fault26AFailedExportLeavesTheTensorWithItsOwner) {
  test::VersionedProducer producer;
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  DLManagedTensorVersioned* exported = nullptr;
  const int needed = fail_each_allocation([&] {
    EXPECT_TRUE(t.owner);
    EXPECT_EQ(producer.deleted, 0);
    exported = export_managed(std::move(t));
  });
  EXPECT_EQ(needed, 1) << "one allocation an export";
  EXPECT_EQ(producer.deleted, 0);
  exported->deleter(exported);
  EXPECT_EQ(producer.deleted, 1);
}

TEST(OutOfMemory, ASmallImportAllocatesNothing) {
  test::VersionedProducer producer;
  Tensor t;
  allocations_until_failure = 0;
  const bool ok = import_managed(&producer.managed, t).ok();
  allocations_until_failure = -1;
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace dlbridge
