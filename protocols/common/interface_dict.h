// The dictionary that __array_interface__ and __cuda_array_interface__ have in common, read and written.
#pragma once

#include "dlbridge/errors.h"
#include "dlbridge/tensor.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/read.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::py {

struct InterfaceDict {
  ReadCall& call;
  const char* attribute;  // the attribute's name, for messages
  PyObject* dict;         // borrowed from the reader, which holds it; its values are held one by one
  DimsArgument shape;
  DimsArgument strides;  // bytes; ndim -1: C-contiguous
  Ref data;              // null: the key is missing
  const DTypeInfo* dtype = nullptr;
  long version = 0;

  InterfaceDict(ReadCall& for_call, const char* name, PyObject* value) noexcept
      : call(for_call), attribute(name), dict(value) {}
};

// The value of an optional key, held: what is read of the others may run code that changes the dictionary. Null
// where the key is missing or None. False with a Python error set.
bool get_optional(const InterfaceDict& interface, PyObject* key, Ref& out);

// Reads and checks shape, typestr, strides, mask, descr and version. False with a refusal that names the attribute and
// the field, or with a Python error set.
bool parse_interface_dict(long least_version, InterfaceDict& out);

// data=(address, read_only). False as above.
bool place_at_address(const InterfaceDict& interface, Tensor& tensor);

// Dtype, shape and strides.
Status lay_out(const InterfaceDict& interface, Tensor& tensor);

// The end of a reader, whose last check gave `status`: refused, or done with the object as the tensor's source, since
// the interface owns nothing.
Read finish(const InterfaceDict& interface, const Status& status, PyObject* object, TensorObject* self);

// Refuses for a failed status, in the name of the attribute; false.
bool refuse(const InterfaceDict& interface, const Status& status);

// The dictionary of a tensor: shape, typestr, data, strides (None when C-contiguous), version; with `with_stream` also
// the key 'stream', None. Null with an AttributeError where the dtype has no typestr, so that hasattr() and NumPy look
// further.
PyObject* make_interface_dict(const Tensor& tensor, const char* attribute, int version, bool with_stream);
// That AttributeError; null.
PyObject* refuse_typeless(const Tensor& tensor, const char* attribute);

}  // namespace dlbridge::py
