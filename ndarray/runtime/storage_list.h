// The free list of the storage objects themselves, not of their memory: an array of the pool costs no malloc.
#pragma once

#include <new>

#include "ndarray/runtime/storage.h"

namespace dlbridge::nd {

namespace detail {
// One list a thread: a storage freed on another thread joins that thread's list.
struct StorageList {
  static constexpr int kItems = 256;
  Storage* items[kItems];
  int count = 0;
  int capacity = kItems;

  StorageList() noexcept = default;
  StorageList(const StorageList&) = delete;
  StorageList& operator=(const StorageList&) = delete;
  ~StorageList() {
    while (count > 0) ::operator delete(items[--count]);
    capacity = 0;  // storages freed after this thread's list go to the heap
  }
};
inline StorageList& storage_list() noexcept {
  thread_local StorageList list;
  return list;
}
}  // namespace detail

inline Storage* new_storage() noexcept {
  detail::StorageList& list = detail::storage_list();
  void* memory = list.count > 0 ? list.items[--list.count] : ::operator new(sizeof(Storage), std::nothrow);
  return memory == nullptr ? nullptr : new (memory) Storage;
}
inline void free_storage(Storage* storage) noexcept {
  storage->~Storage();
  detail::StorageList& list = detail::storage_list();
  if (list.count < list.capacity) list.items[list.count++] = storage;
  else ::operator delete(storage);
}

}  // namespace dlbridge::nd
