// Preloaded: replaces operator new by one that fails on command, for tests/python/out_of_memory_child.py.
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> left{-1};  // allocations until the one that fails; -1: none fails
std::atomic<bool> every{false};

bool fails() {
  if (left.load() < 0) return false;
  if (left.load() == 0) {
    if (!every.load()) left.store(-1);
    return true;
  }
  left.fetch_sub(1);
  return false;
}

void* take(std::size_t size) { return fails() ? nullptr : std::malloc(size == 0 ? 1 : size); }
}  // namespace

// The n-th allocation from now (0: the next) fails, and with `all` those after it; -1: none.
extern "C" void fail_new_after(long n, int all) {
  every.store(all != 0);
  left.store(n);
}

void* operator new(std::size_t size) {
  if (void* block = take(size)) return block;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
