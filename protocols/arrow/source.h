// What an object gives through Arrow: its schema first, then its arrays.
#pragma once

#include <vector>

#include "dlbridge/arrow_codec.h"
#include "protocols/arrow/capsules.h"

namespace dlbridge::arrow_c {

// Arrays are asked for after the schema has been looked at: a stream of something that cannot be taken is not run.
class Source {
 public:
  Owned<ArrowSchema> schema;
  std::vector<Owned<ArrowArray>> arrays;  // after load()
  DLDevice device{kDLCPU, 0};
  Ordering ready;

  // kDone: the schema is there.
  py::Read open(PyObject* object, py::ReadCall& call);
  py::Read open_stream(PyObject* object, py::ReadCall& call);
  Status load();

 private:
  bool open_pair(PyObject* pair, const char* method, bool on_device, py::ReadCall& call);
  bool start(PyObject* capsule, py::ReadCall& call);

  Owned<ArrowArrayStream> stream_;
};

}  // namespace dlbridge::arrow_c
