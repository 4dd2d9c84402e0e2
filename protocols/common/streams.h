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

// Reads None, an int, or an object with __cuda_stream__ (a (version, handle) pair, as attribute or method).
// 0 is refused: it is ambiguous between the two default streams (array API). False with a Python error set.
bool parse_stream(PyObject* argument, const char* operation, StreamArgument& out);

// Refuses a number that cannot be a stream: the driver crashes on an address with nothing behind it. A handle that
// passed is remembered, so that the frameworks' few streams cost no system call. Needs no driver.
Status check_stream(StreamHandle stream);

// Orders `consumer` behind the tensor's data. On the host a stream other than None and -1 is refused.
// None means the legacy default stream for CUDA (array API). False with a Python error set.
bool order_for_consumer(const Tensor& tensor, const StreamArgument& consumer, const char* operation);

// The environment switches, read once at import.
struct Switches {
  bool cuda_array_interface_sync = true;        // DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC
  int cuda_array_interface_export_version = 3;  // DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION
  bool dlpack_managed_as_cuda = false;          // DLBRIDGE_DLPACK_EXPORT_VERSION below 0.6
};
extern Switches switches;
void read_switches() noexcept;

}  // namespace dlbridge::py
