// The entries that __array_interface__ and __cuda_array_interface__ have in common.
#pragma once

#include "dlbridge/errors.h"
#include "dlbridge/tensor.h"
#include "protocols/common/array_arguments.h"

namespace dlbridge::array_interface {

struct InterfaceDict {
  const char* attribute;     // the attribute's name, for messages
  PyObject* dict;            // borrowed
  py::DimsArgument shape;
  py::DimsArgument strides;  // bytes; ndim -1: C-contiguous
  PyObject* data = nullptr;  // borrowed; nullptr: the key is missing
  const DTypeInfo* dtype = nullptr;
  long version = 0;
};

// Reads and checks shape, typestr, strides, mask, descr and version. False with a Python error set that names the
// attribute and the field.
bool parse_interface_dict(PyObject* dict, const char* attribute, long least_version, InterfaceDict& out);

// data=(address, read_only). False with a Python error set.
bool place_at_address(const InterfaceDict& interface, Tensor& tensor);

// Dtype, shape and strides.
Status lay_out(const InterfaceDict& interface, Tensor& tensor);

// Raises for a failed status, in the name of the attribute; false.
bool refuse(const InterfaceDict& interface, const Status& status);

}  // namespace dlbridge::array_interface
