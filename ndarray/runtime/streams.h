// Streams of the runtime's own, and what a graph capture means to memory.
#pragma once

#include <cstdint>
#include <optional>

#include "dlbridge/errors.h"
#include "dlbridge/stream.h"
#include "ndarray/runtime/driver.h"

namespace dlbridge::nd {

// A stream of the runtime's is never destroyed: storages, pools and tokens go on naming the stream that used memory
// last, and the driver crashes on a dead handle. What is given back serves the next create_stream() of its kind; work
// that is still queued on it only comes first.
struct StreamKind {
  int device = 0;
  bool non_blocking = false;
  int priority = 0;
  friend bool operator==(const StreamKind&, const StreamKind&) = default;
};
Status create_stream(const StreamKind& kind, StreamHandle& out);
// Ends a capture that is open on it, whose graph nobody can have any more.
void recycle_stream(const StreamKind& kind, StreamHandle stream) noexcept;
// True for the default streams, the bridge's relay streams and those of create_stream(): they live forever.
bool is_lasting_stream(StreamHandle stream) noexcept;

// Which capture the stream takes part in. Nothing on legacy while another stream captures, and where it takes no part.
std::optional<std::uint64_t> capture_of(StreamHandle stream) noexcept;

// How many captures begun through this library are open: while none is, streams of ours need not be asked.
int open_captures() noexcept;
Status begin_capture(StreamHandle stream, int mode);
Status end_capture(StreamHandle stream, CUgraph& out);

}  // namespace dlbridge::nd
