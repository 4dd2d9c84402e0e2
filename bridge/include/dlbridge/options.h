// How an exchange is to be done: on which stream, with what waiting, and whether elements may be copied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dlbridge/stream.h"

namespace dlbridge {

enum class copy : std::uint8_t {
  never,      // share the memory, or throw
  if_needed,  // share it where the receiver can take it as it is, else a dense copy
  always,
};

enum class sync : std::uint8_t {
  event,  // the consumer's stream waits for the producer's work; the host goes on
  host,   // the host waits
  none,   // nobody waits: the caller has ordered the two
};

// A CUDA stream of the caller's, or none. Borrowed.
class stream_ref {
 public:
  constexpr stream_ref() noexcept = default;
  constexpr stream_ref(std::nullptr_t) noexcept : handle_(kLegacyStream) {}  // NOLINT(google-explicit-constructor)
  template <class Stream>
  stream_ref(Stream* stream) noexcept  // cudaStream_t and CUstream NOLINT(google-explicit-constructor)
      : handle_(stream == nullptr ? kLegacyStream : reinterpret_cast<StreamHandle>(stream)) {}
  // As DLPack and the CUDA Array Interface number it; 0 is the legacy default stream.
  static constexpr stream_ref from_handle(StreamHandle handle) noexcept {
    stream_ref s;
    s.handle_ = handle == 0 ? kLegacyStream : handle;
    return s;
  }
  constexpr explicit operator bool() const noexcept { return handle_ != 0; }
  constexpr StreamHandle handle() const noexcept { return handle_; }

 private:
  StreamHandle handle_ = 0;  // 0: none given
};

// `stream`: for from(), the stream that the data is being made on; for to(), the one that it will be used on. None:
// the framework's current stream where it has such a notion, else the thread's (cuda::set_current_stream), else the
// legacy default stream. Without a meaning for host memory.
struct options {
  stream_ref stream = {};
  dlbridge::sync sync = dlbridge::sync::event;
  dlbridge::copy copy = dlbridge::copy::never;
};

}  // namespace dlbridge
