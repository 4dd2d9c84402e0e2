// Errors of the core: a code with a message, carried by value; nothing here knows Python. The layer that faces the
// user maps a code to its exception in one place (protocols/common/errors.cpp for Python).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace dlbridge {

enum class ErrorCode : std::uint8_t {
  kNoProtocol,   // the object speaks none of the protocols                 -> TypeError
  kWrongType,    // an argument or a field has the wrong type               -> TypeError
  kRefused,      // an exchange the specification says to refuse            -> BufferError
  kCopyRefused,  // refused only because copying was forbidden              -> BufferError and ValueError
  kMalformed,    // data that breaks the protocol, or a bad argument value  -> ValueError
  kOverflow,     // shape or strides that leave the address space           -> OverflowError
  kOutOfMemory,  //                                                         -> MemoryError
  kCuda,         // the CUDA driver reported an error                       -> RuntimeError
  kIndex,        // an index out of bounds, or one that is none           -> IndexError
};

struct Issue {
  ErrorCode code;
  std::string message;  // what was got; which rule; what to do. The caller puts the operation before it.
  // What the user of a C++ function can do, in place of the message's hint, which is for the function's author. Empty:
  // nothing else.
  std::string caller_hint = {};
};

// What compilers say where a Status is ignored. Before a function, too: g++ then shows that alone, and not the class.
#define DLBRIDGE_CHECKED [[nodiscard("ask its ok(), return it, or give it to throw_if_failed()")]]

// Null on success, so that the hot path pays one test. An ignored failure does not compile.
class DLBRIDGE_CHECKED Status {
 public:
  Status() noexcept = default;
  Status(ErrorCode code, std::string message) : issue_(new Issue{code, std::move(message)}) {}
  Status(Status&& other) noexcept : issue_(std::exchange(other.issue_, nullptr)) {}
  // void: nvcc takes a reference to a [[nodiscard]] class for a result that is ignored.
  void operator=(Status&& other) noexcept { std::swap(issue_, other.issue_); }
  [[gnu::always_inline]] ~Status() {
    if (issue_ != nullptr) [[unlikely]]
      free_issue(issue_);
  }

  bool ok() const noexcept { return issue_ == nullptr; }
  const Issue& issue() const noexcept { return *issue_; }
  ErrorCode code() const noexcept { return issue_->code; }
  const std::string& message() const noexcept { return issue_->message; }

 private:
  [[gnu::cold, gnu::noinline]] static void free_issue(const Issue* issue) noexcept { delete issue; }

  const Issue* issue_ = nullptr;  // owned; <memory> would cost every translation unit 0.1 s
};

inline Status refused(std::string message) { return {ErrorCode::kRefused, std::move(message)}; }
inline Status malformed(std::string message) { return {ErrorCode::kMalformed, std::move(message)}; }
inline Status overflow(std::string message) { return {ErrorCode::kOverflow, std::move(message)}; }

}  // namespace dlbridge

// Returns the failure of `expression` to the caller.
#define DLBRIDGE_TRY(expression)                                                               \
  do {                                                                                         \
    if (::dlbridge::Status dlbridge_status = (expression); !dlbridge_status.ok()) [[unlikely]] \
      return dlbridge_status;                                                                  \
  } while (false)
