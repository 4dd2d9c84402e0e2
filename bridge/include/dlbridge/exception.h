// Error, the one exception of the SDK: the code and the message of an Issue.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "dlbridge/errors.h"

namespace dlbridge {

// what() is "operation: what was expected, what was got. Hint: what to do".
class Error : public std::exception {
 public:
  explicit Error(Issue issue) : issue_(std::move(issue)) {}
  Error(ErrorCode code, std::string message) : issue_{code, std::move(message)} {}
  ErrorCode code() const noexcept { return issue_.code; }
  const char* what() const noexcept override { return issue_.message.c_str(); }
  // For whoever has called the function that failed, and cannot change it.
  [[gnu::cold, gnu::noinline]] std::string what_for_caller() const {
    std::string out = issue_.message;
    if (issue_.caller_hint.empty()) return out;
    if (const std::size_t hint = out.rfind(". Hint: "); hint != std::string::npos) out.erase(hint);
    return out.append(". Hint: ").append(issue_.caller_hint);
  }

 private:
  Issue issue_;
};

// The operation is put before the message of a failure.
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_issue(std::string_view operation, const Issue& issue) {
  throw Error(Issue{issue.code, std::string(operation) + ": " + issue.message, issue.caller_hint});
}
inline void throw_if_failed(std::string_view operation, const Status& status) {
  if (!status.ok()) [[unlikely]]
    throw_issue(operation, status.issue());
}

}  // namespace dlbridge
