#include <iterator>

#include "protocols/common/python.h"

namespace dlbridge::py {

Names names;

bool init_names() {
  if (names.empty_tuple != nullptr) return true;
  const struct {
    PyObject** slot;
    const char* text;
  } table[] = {
      {&names.dlpack, "__dlpack__"},
      {&names.dlpack_device, "__dlpack_device__"},
      {&names.dlpack_c_exchange_api, "__dlpack_c_exchange_api__"},
      {&names.array_interface, "__array_interface__"},
      {&names.array_struct, "__array_struct__"},
      {&names.cuda_array_interface, "__cuda_array_interface__"},
      {&names.arrow_c_array, "__arrow_c_array__"},
      {&names.arrow_c_stream, "__arrow_c_stream__"},
      {&names.arrow_c_device_array, "__arrow_c_device_array__"},
      {&names.arrow_c_device_stream, "__arrow_c_device_stream__"},
      {&names.cuda_stream, "__cuda_stream__"},
      {&names.shape, "shape"},
      {&names.typestr, "typestr"},
      {&names.data, "data"},
      {&names.strides, "strides"},
      {&names.version, "version"},
      {&names.stream, "stream"},
      {&names.mask, "mask"},
      {&names.descr, "descr"},
      {&names.offset, "offset"},
      {&names.max_version, "max_version"},
      {&names.dl_device, "dl_device"},
      {&names.copy, "copy"},
      {&names.protocol, "protocol"},
      {&names.device, "device"},
      {&names.nulls, "nulls"},
      {&names.to, "to"},
      {&names.requires_grad, "requires_grad"},
      {&names.is_conj, "is_conj"},
      {&names.is_neg, "is_neg"},
  };
  for (const auto& entry : table)
    if ((*entry.slot = PyUnicode_InternFromString(entry.text)) == nullptr) return false;
  names.max_version_value = Py_BuildValue("(ii)", 1, 3);
  names.kw_max_version = PyTuple_Pack(1, names.max_version);
  names.kw_stream = PyTuple_Pack(1, names.stream);
  names.kw_stream_max_version = PyTuple_Pack(2, names.stream, names.max_version);
  names.kw_max_version_dl_device_copy = PyTuple_Pack(3, names.max_version, names.dl_device, names.copy);
  names.host_device = Py_BuildValue("(ii)", 1, 0);
  names.empty_tuple = PyTuple_New(0);
  return PyErr_Occurred() == nullptr;
}

}  // namespace dlbridge::py
