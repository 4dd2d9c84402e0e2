// How a reader answers: what every reader of protocols/ and frameworks/ has in common.
#pragma once

#include <cstdint>
#include <utility>

#include "dlbridge/errors.h"

namespace dlbridge::py {

// What a read returns: the object does not speak this protocol at all (nothing is said), it does and the tensor is
// filled, or it does and refused. Then the call holds the refusal, or a Python error of the object's own code is set,
// or both: the error is the refusal's cause.
enum class Read : std::uint8_t { kAbsent, kDone, kFailed };

// One read, as the reader sees it. It does not know who asks: raise_refusal() puts the caller's name before what it
// says.
struct ReadCall {
  bool* swapped = nullptr;  // where to say that the bytes are in the other order; null: such data is refused
  Status refusal;

  Read refuse(Status why) noexcept {
    refusal = std::move(why);
    return Read::kFailed;
  }
  Read refuse(ErrorCode code, std::string message) { return refuse(Status(code, std::move(message))); }
};

}  // namespace dlbridge::py
