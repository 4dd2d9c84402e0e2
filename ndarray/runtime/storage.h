// Memory behind arrays: counted, with the stream that used it last, from a resource that takes it back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dlbridge/device.h"
#include "dlbridge/errors.h"
#include "dlbridge/owner.h"
#include "dlbridge/stream.h"
#include "dlbridge/tensor.h"

namespace dlbridge::nd {

struct Storage;

// Where memory comes from: the caching pool, a managed or pinned pool, malloc, a user's function. Thread-safe.
class MemoryResource {
 public:
  MemoryResource() = default;
  MemoryResource(const MemoryResource&) = delete;
  MemoryResource& operator=(const MemoryResource&) = delete;
  virtual ~MemoryResource() = default;

  // Fills storage.data, storage.block and (where it is another kind of memory than asked for) storage.device. Device,
  // bytes (> 0) and stream are set by the caller; the memory is first used on storage.stream. CUDA: another
  // device may be current, or none. Never synchronises on a hit.
  virtual Status allocate(Storage& storage) = 0;
  // Any thread, without the GIL, also at exit: then (runtime/lifetime.h) nothing may call the driver. Later allocations
  // may reuse the memory on storage.stream at once, on any other stream behind an event.
  virtual void release(Storage& storage) noexcept = 0;
};

// One piece of memory; views share it. Every use of the memory goes through acquire(), which makes the using stream
// wait for the one before: all uses are ordered, so that neither a reader nor the pool can race a writer.
struct Storage {
  Atomic<StreamHandle> stream;  // the last stream that used it (0: none yet); see Ordering::on_stream_of()
  std::atomic<std::int32_t> references{1};
  DLDevice device{kDLCPU, 0};
  void* data = nullptr;
  std::size_t bytes = 0;               // as asked for; a block may be larger
  MemoryResource* resource = nullptr;  // null: `foreign` holds the memory of somebody else
  void* block = nullptr;               // the resource's own
  Storage* next = nullptr;             // of a chain that its one owner keeps
  void* array = nullptr;               // ndarray.base of the views: not owned, its object takes it away (Python)
  Owner foreign;
};

// A storage of `bytes` (0: no memory, data null) from the calling thread's resource for that device.
Status allocate_storage(DLDevice device, std::size_t bytes, StreamHandle stream, Storage*& out);
// From a given resource.
Status allocate_storage(MemoryResource& resource, DLDevice device, std::size_t bytes, StreamHandle stream,
                        Storage*& out);
// Around memory of somebody else; `owner` keeps it alive, `stream` is where its data is ready (0: ready).
Storage* adopt_storage(DLDevice device, void* data, std::size_t bytes, StreamHandle stream, Owner&& owner);

inline void retain(Storage* storage) noexcept { storage->references.fetch_add(1, std::memory_order_relaxed); }
void release(Storage* storage) noexcept;

// A tensor's owner that holds one (new) reference to a storage, and the storage of a tensor that has such an owner.
void release_storage_owner(void* storage) noexcept;
inline Owner share(Storage* storage) noexcept {
  retain(storage);
  return Owner(storage, release_storage_owner);
}
inline Storage* storage_of(const Tensor& tensor) noexcept {
  return tensor.owner.release_function() == release_storage_owner ? static_cast<Storage*>(tensor.owner.context())
                                                                  : nullptr;
}

// Makes `stream` the one that uses the storage from now on, behind the one before; no host wait. Inside a graph capture
// on `stream` nothing is waited for: the work before is not part of the graph, ordering it is the capturer's.
//
// The caller has entered a UseGuard (runtime/lifetime.h), and leaves it when the work is queued: what another stream
// acquires waits for what is queued by then. Where the guard must be broken in between (the driver blocks, memory has
// run out), acquire again after it: the stream then waits for a use that began meanwhile as well, and stands for both.
Status acquire_slowly(Storage& storage, StreamHandle stream);
inline Status acquire(Storage& storage, StreamHandle stream) {
  if (storage.stream == stream) [[likely]]
    return {};
  return acquire_slowly(storage, stream);
}

// The resource of the calling thread for a device: what set_thread_resource() set, else what set_resource() set, else
// the default (malloc; the caching pool of runtime/caching_pool.h).
MemoryResource& current_resource(DLDevice device);
void set_resource(DLDevice device, MemoryResource* resource) noexcept;                    // null: the default again
MemoryResource* set_thread_resource(DLDevice device, MemoryResource* resource) noexcept;  // returns the one before

}  // namespace dlbridge::nd
