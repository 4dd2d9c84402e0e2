// The pools in Python: MemoryPool, MemoryAsyncPool, the pool of page-locked memory.
#include <string>
#include <vector>

#include "ndarray/runtime/async_pool.h"
#include "ndarray/runtime/caching_pool.h"
#include "ndarray/runtime/lifetime.h"
#include "protocols/common/threads.h"
#include "python/src/nd/runtime/objects.h"

namespace dlbridge::py::nd {

namespace {

struct PoolValue : ResourceValue {
  bool is_default = false;

  PoolValue() = default;
  PoolValue(const PoolValue&) = delete;
  PoolValue& operator=(const PoolValue&) = delete;
  ~PoolValue() {
    if (is_default || resource == nullptr || !core::is_running()) return;
    try {
      pool().retire();
    } catch (...) {  // no memory for the list of segments: they stay cached
    }
  }
  core::CachingPool& pool() const { return *static_cast<core::CachingPool*>(resource); }
  core::DevicePool& here(const char* operation) const { return pool().on(chosen_device(operation)); }
};
struct AsyncPoolValue : ResourceValue {
  core::AsyncPool& pool() const { return *static_cast<core::AsyncPool*>(resource); }
};

core::MemoryKind kind_of(const pyb::object& allocator) {
  if (allocator.is_none()) return core::MemoryKind::kDevice;
  const pyb::object given = find_attribute(allocator, "__name__"), name = given ? given : allocator;
  for (const char* managed : {"managed", "malloc_managed"})
    if (name.equal(pyb::str(managed))) return core::MemoryKind::kManaged;
  for (const char* pinned : {"pinned", "alloc_pinned_memory"})
    if (name.equal(pyb::str(pinned))) return core::MemoryKind::kPinned;
  if (name.equal(pyb::str("device"))) return core::MemoryKind::kDevice;
  throw_issue("MemoryPool()", ErrorCode::kMalformed,
              "allocator is " + pyb::repr(allocator).cast<std::string>() +
                  ". Give None, nd.cuda.malloc_managed, or 'device', 'managed' or 'pinned'; other allocators are set "
                  "with set_allocator()");
}

// Storages name their resource, and may be the last to go.
template <class Resource>
Resource* for_ever(Resource* resource) {
  static constinit Mutex adding;
  static auto* kept = new std::vector<Resource*>;
  const MutexHold hold(adding);
  return kept->emplace_back(resource);
}

std::unique_ptr<PoolValue> create_pool(const pyb::object& allocator) {
  auto out = std::make_unique<PoolValue>();
  out->resource = for_ever(new core::CachingPool(kind_of(allocator)));
  return out;
}

pyb::object wrap_default(core::CachingPool& pool) {
  auto out = std::make_unique<PoolValue>();
  out->resource = &pool;
  out->is_default = true;
  return pyb::cast(std::move(out));
}

core::PoolStatistics statistics(const PoolValue& p) { return p.here("MemoryPool").statistics(); }

pyb::dict all_statistics(const PoolValue& p) {
  const core::PoolStatistics s = statistics(p);
  pyb::dict out;
  out["used_bytes"] = s.used_bytes;
  out["total_bytes"] = s.total_bytes;
  out["free_bytes"] = s.total_bytes - s.used_bytes;
  out["peak_used_bytes"] = s.peak_used_bytes;
  out["peak_total_bytes"] = s.peak_total_bytes;
  out["free_blocks"] = s.free_blocks;
  out["hits"] = s.hits;
  out["crossed"] = s.crossed;
  out["grown"] = s.grown;
  return out;
}

void set_limit(const PoolValue& p, const pyb::object& size, const pyb::object& fraction) {
  const char* operation = "MemoryPool.set_limit()";
  if (size.is_none() == fraction.is_none())
    throw_issue(operation, ErrorCode::kMalformed, "give either size (bytes; 0 for none) or fraction (of the device)");
  const int device = chosen_device(operation);
  std::size_t bytes = 0;
  if (!size.is_none()) {
    bytes = size.cast<std::size_t>();
  } else {
    const double part = fraction.cast<double>();
    if (!(part >= 0 && part <= 1))
      throw_issue(operation, ErrorCode::kMalformed, "fraction is " + std::to_string(part) + ". Give 0 to 1");
    std::size_t total = 0;
    check_call(core::driver().device_total_mem(&total, device), "cuDeviceTotalMem", operation);
    bytes = static_cast<std::size_t>(part * static_cast<double>(total));
  }
  p.pool().on(device).set_limit(bytes);
}

void free_all(const PoolValue& p, const pyb::object& stream) {
  const char* operation = "MemoryPool.free_all_blocks()";
  core::DevicePool& pool = p.here(operation);
  if (stream.is_none()) return pool.free_all_blocks();
  pool.free_all_blocks(stream_argument(stream, chosen_device(operation), operation));
}

void bind_pool(pyb::module_& m) {
  pyb::class_<PoolValue, ResourceValue>(
      m, "MemoryPool",
      "Keeps freed memory for the next request: at once for the stream that used it, behind an event for others.\n\n"
      "Figures and limits are those of the current device.")
      .def(pyb::init(&create_pool), pyb::arg("allocator") = pyb::none())
      .def(
          "malloc",
          [](const PoolValue& p, Int<std::size_t> size) {
            return allocate_pointer(p.resource, size, "MemoryPool.malloc()");
          },
          pyb::arg("size"), "Memory as a MemoryPointer.")
      .def("free_all_blocks", &free_all, pyb::arg("stream") = pyb::none(),
           "Gives what is not in use back to the driver: all, or what the stream used last.")
      .def("n_free_blocks", [](const PoolValue& p) { return statistics(p).free_blocks; })
      .def("used_bytes", [](const PoolValue& p) { return statistics(p).used_bytes; })
      .def("free_bytes",
           [](const PoolValue& p) {
             const auto s = statistics(p);
             return s.total_bytes - s.used_bytes;
           })
      .def("total_bytes", [](const PoolValue& p) { return statistics(p).total_bytes; })
      .def("peak_bytes", [](const PoolValue& p) { return statistics(p).peak_used_bytes; })
      .def("reset_peaks", [](const PoolValue& p) { p.here("MemoryPool.reset_peaks()").reset_peaks(); })
      .def("statistics", &all_statistics)
      .def("set_limit", &set_limit, pyb::arg("size") = pyb::none(), pyb::kw_only(), pyb::arg("fraction") = pyb::none(),
           "The most that is taken from the driver on the current device; 0: no limit.")
      .def("get_limit", [](const PoolValue& p) { return p.here("MemoryPool.get_limit()").limit(); });
}

void bind_async_pool(pyb::module_& m) {
  pyb::class_<AsyncPoolValue, ResourceValue>(
      m, "MemoryAsyncPool",
      "The driver's stream-ordered pool (cuMemAllocAsync).\n\n"
      "pool_handles: 'own', a pool for this library alone that keeps freed memory, or 'default', the device's, which "
      "gives it back when a stream is synchronised.")
      .def(pyb::init([](const std::string& handles) {
             if (handles != "own" && handles != "default")
               throw_issue("MemoryAsyncPool()", ErrorCode::kMalformed,
                           "pool_handles is '" + handles + "'. Give 'own' or 'default'");
             auto out = std::make_unique<AsyncPoolValue>();
             out->resource = for_ever(new core::AsyncPool(handles == "own"));
             return out;
           }),
           pyb::arg("pool_handles") = "own")
      .def(
          "malloc",
          [](const AsyncPoolValue& p, Int<std::size_t> size) {
            return allocate_pointer(p.resource, size, "MemoryAsyncPool.malloc()");
          },
          pyb::arg("size"))
      .def("free_all_blocks",
           [](const AsyncPoolValue& p) {
             throw_if_bad(p.pool().free_all_blocks(chosen_device("MemoryAsyncPool")), "MemoryAsyncPool");
           })
      .def("used_bytes",
           [](const AsyncPoolValue& p) {
             std::size_t bytes = 0;
             throw_if_bad(p.pool().used_bytes(chosen_device("MemoryAsyncPool"), bytes), "MemoryAsyncPool");
             return bytes;
           })
      .def("total_bytes", [](const AsyncPoolValue& p) {
        std::size_t bytes = 0;
        throw_if_bad(p.pool().total_bytes(chosen_device("MemoryAsyncPool"), bytes), "MemoryAsyncPool");
        return bytes;
      });
}

}  // namespace

void init_pools(pyb::module_& m) {
  pyb::class_<ResourceValue>(m, "BaseAllocator");
  bind_pool(m);
  bind_async_pool(m);
  m.attr("_default_pool") = wrap_default(core::default_pool());
  m.attr("_default_pinned_pool") = wrap_default(core::default_pinned_pool());
}

}  // namespace dlbridge::py::nd
