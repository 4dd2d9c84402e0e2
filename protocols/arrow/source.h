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
  DLDevice device{kDLCPU, 0};             // of all that have rows
  Ordering ready;                         // of the last that has rows; its event is that array's

  // kDone: the schema is there.
  py::Read open(PyObject* object, py::ReadCall& call);
  py::Read open_stream(PyObject* object, py::ReadCall& call);
  Status load();

 private:
  template <class Array>
  bool open_pair(PyObject* pair, const char* method, py::ReadCall& call);
  template <auto kStream>
  bool start(PyObject* capsule, const char* method, py::ReadCall& call);
  template <class Stream>
  Status run(Owned<Stream>& stream);
  Status add(ArrowDeviceArray& array);
  Status wait_on_host();

  Owned<ArrowArrayStream> stream_;
  Owned<ArrowDeviceArrayStream> device_stream_;
  bool has_rows_ = false;
};

}  // namespace dlbridge::arrow_c
