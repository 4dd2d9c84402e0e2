// Streams as Python hands them over, and the ordering of device tensors at the edges of the bridge.
#pragma once

#include "dlbridge/errors.h"
#include "dlbridge/stream.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::py {

// What a `stream=` argument says.
struct StreamArgument {
  enum class Kind : std::uint8_t { kNone, kNoSync, kHandle } kind = Kind::kNone;  // None, -1, or a CUDA stream
  StreamHandle handle = 0;
};

// What the stream is for: -1, "no synchronisation", is an order to keep, but nothing that work can be queued on.
enum class StreamUse : std::uint8_t { kOrder, kWork };

// Reads None, an int, or an object with __cuda_stream__ (a (version, handle) pair, as attribute or method).
// 0 is refused: it is ambiguous between the two default streams (array API). False with a Python error set.
bool parse_stream(PyObject* argument, const char* operation, StreamArgument& out, StreamUse use = StreamUse::kOrder);

// Refuses a number that cannot be a stream: the driver crashes on an address with nothing behind it. A handle that
// passed is remembered, so that the frameworks' few streams cost no system call. Needs no driver.
Status check_stream(StreamHandle stream);

// Orders `consumer` behind the tensor's data. On the host a stream other than None and -1 is refused.
// None means the legacy default stream for CUDA (array API). False with a Python error set.
bool order_for_consumer(const Tensor& tensor, const StreamArgument& consumer, const char* operation);

// For a tensor that outlives the call that read it. A producer's stream may be destroyed meanwhile, and then its handle
// must not be used: an event is recorded on it now, and the tensor is ready when what the stream holds by now is done.
// The handles of streams that live as long as the process are kept (cuda::is_lasting_stream), and so is one that takes
// part in a graph capture, where an event would become part of the graph.
Status settle_order(TensorObject* self);
// The same for what a function returns: null with a Python error set where it cannot be done, and `self` is dropped.
PyObject* settled_slowly(TensorObject* self, const char* operation);
inline PyObject* settled(TensorObject* self, const char* operation) {
  if (self == nullptr || self->tensor.ready.kind != Ordering::Kind::kOnStream ||
      self->tensor.ready.handle == kLegacyStream) [[likely]]
    return reinterpret_cast<PyObject*>(self);
  return settled_slowly(self, operation);
}

// Tensor.record_stream(). False with a Python error set.
bool record_stream(TensorObject* self, PyObject* stream);

// The producer's stream, and with it whoever gets the memory next, waits for the work that `user` holds by now. Where
// the producer's stream is not known, it is taken to be the legacy default stream, which all others wait for that were
// not made to be independent of it.
Status order_producer(const Tensor& tensor, StreamHandle user);
// The same with a stream as Python hands it over. False with a Python error set.
bool hand_back(const Tensor& tensor, PyObject* stream);

// The environment switches, read once at import.
struct Switches {
  bool cuda_array_interface_sync = true;        // DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC
  int cuda_array_interface_export_version = 3;  // DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION
  bool dlpack_managed_as_cuda = false;          // DLBRIDGE_DLPACK_EXPORT_VERSION below 0.6
};
extern Switches switches;
void read_switches() noexcept;

}  // namespace dlbridge::py
