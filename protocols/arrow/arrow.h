// Arrow's PyCapsule interface, both ways: arrays, streams and device arrays.
#pragma once

#include <string>
#include <vector>

#include "dlbridge/arrow_codec.h"
#include "protocols/common/read.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::arrow_c {

// "refuse", "nan" or "mask"; null and None: refuse. False with a Python error set.
bool parse_nulls(PyObject* argument, const char* operation, Nulls& out);

// How a user of asdlpack() and columns() is told what to do.
inline constexpr ReadOptions options_of(Nulls nulls, Copies copies) {
  return {nulls, copies,
          "Fill or drop them first, pass nulls='nan' (floats: a copy with NaN in their place), or nulls='mask' (the "
          "values and a mask)",
          "Pass copy=True, or join the chunks first (rechunk(), combine_chunks())"};
}

// One column: from __arrow_c_device_array__, __arrow_c_device_stream__, __arrow_c_stream__ or __arrow_c_array__, the
// first of them that there is.
// The tensor's flags say kFlagCopied where its memory is a copy made here. `mask` is filled for Nulls::kMask.
py::Read read(PyObject* object, const ReadOptions& options, py::ReadCall& call, py::TensorObject* self, Tensor* mask);

// The same of an object whose type has __arrow_c_stream__ alone, where nothing has to be copied.
py::Read read_stream(PyObject* object, py::ReadCall& call, py::TensorObject* self);

// The columns of a table, in order. False with the refusal in the call or a Python error set, or both. kAbsent where
// the object speaks no Arrow.
struct NamedColumn {
  std::string name;
  Tensor values;
  Tensor mask;  // for Nulls::kMask
};
py::Read read_columns(PyObject* table, const ReadOptions& options, py::ReadCall& call, std::vector<NamedColumn>& out);

// The name of the type that an object has in Arrow: "timestamp[ns, UTC]". Null, with no Python error set, where it
// speaks no Arrow; else a new reference, or null with the error.
PyObject* type_of(PyObject* object, const char* operation);

// HostTensor.__arrow_c_array__, and what CudaTensor has, too.
PyObject* tensor_arrow_array(PyObject* self, PyObject* requested_schema);
PyObject* tensor_arrow_device_array(PyObject* self, PyObject* requested_schema);
PyObject* tensor_arrow_schema(PyObject* self);

}  // namespace dlbridge::arrow_c
