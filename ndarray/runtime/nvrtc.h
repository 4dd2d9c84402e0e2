// NVRTC, the CUDA C++ compiler as a library: found at run time, so that neither a toolkit nor a GPU is needed to build.
// Compiling needs no driver and no GPU either.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dlbridge/errors.h"

namespace dlbridge::nd::nvrtc {

struct Version {
  int major = 0;
  int minor = 0;
};

struct Info {
  std::string path;  // as it was opened
  Version version;
  std::vector<int> architectures;  // 90 for sm_90, ascending
};

// Opens the first candidate that loads and whose code the driver can run: `newest_major` is the major CUDA version of
// the driver (0: no driver, any will do). The choice is kept for the process; later calls return it and ignore their
// arguments. Fails with the reason of every candidate. Thread-safe; never closed.
Status open(const std::vector<std::string>& candidates, int newest_major, const Info*& out);

struct Request {
  std::string source;
  std::string name;  // for messages: what stands before the line number
  std::vector<std::string> options;
  std::vector<std::string> name_expressions;                 // templates to instantiate
  std::vector<std::pair<std::string, std::string>> headers;  // name as included, text
  bool machine_code = true;                                  // a cubin; false: PTX
};

struct Output {
  bool succeeded = false;  // false: the log says what is wrong with the source
  std::string log;
  std::string image;                       // cubin, or PTX with its terminating zero
  std::vector<std::string> lowered_names;  // one a name expression
};

// Compiles. An error in the source is an Output that did not succeed; a Status is a fault of the library or of its use
// (an invalid option). open() must have succeeded. Takes from milliseconds to seconds: call without the GIL.
Status compile(const Request& request, Output& out);

}  // namespace dlbridge::nd::nvrtc
