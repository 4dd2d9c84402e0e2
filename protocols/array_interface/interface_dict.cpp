#include "protocols/array_interface/interface_dict.h"

#include <string>

#include "dlbridge/validate.h"
#include "protocols/array_interface/typestr.h"
#include "protocols/common/errors.h"

namespace dlbridge::array_interface {

namespace {

constexpr char kOperation[] = "asdlpack()";

bool refuse(const InterfaceDict& interface, ErrorCode code, const std::string& text) {
  py::raise(kOperation, code, std::string(interface.attribute) + ": " + text);
  return false;
}

// Missing and None are the same for optional keys. False with a Python error set.
bool get(PyObject* dict, PyObject* key, PyObject*& out) {
  out = PyDict_GetItemWithError(dict, key);
  return out != nullptr || PyErr_Occurred() == nullptr;
}

bool parse_version(InterfaceDict& out, long least) {
  PyObject* version;
  if (!get(out.dict, py::names.version, version)) return false;
  if (version == nullptr || !PyLong_Check(version))
    return refuse(out, ErrorCode::kMalformed, "'version' is missing or no integer. The producer must mend it");
  out.version = PyLong_AsLong(version);
  if (out.version == -1 && PyErr_Occurred() != nullptr) return false;
  if (out.version >= least) return true;  // later versions only add keys: they are not rejected
  return refuse(out, ErrorCode::kMalformed,
                "'version' is " + std::to_string(out.version) + "; version " + std::to_string(least) +
                    " and later can be read. Update the producer");
}

bool parse_dtype(InterfaceDict& out) {
  PyObject* typestr;
  if (!get(out.dict, py::names.typestr, typestr)) return false;
  if (typestr == nullptr || !PyUnicode_Check(typestr))
    return refuse(out, ErrorCode::kMalformed, "'typestr' is missing or no str. The producer must mend it");
  Py_ssize_t length;
  const char* text = PyUnicode_AsUTF8AndSize(typestr, &length);
  if (text == nullptr) return false;
  const Status status = parse_typestr({text, static_cast<std::size_t>(length)}, out.dtype);
  if (status.ok()) return true;
  return refuse(out, status.code(), status.message());
}

bool refuse_mask(InterfaceDict& out) {
  PyObject* mask;
  if (!get(out.dict, py::names.mask, mask)) return false;
  if (mask == nullptr || mask == Py_None) return true;
  return refuse(out, ErrorCode::kRefused,
                "'mask' is set, and DLPack cannot say which elements are valid. Fill the masked elements first, for "
                "example a.filled(0)");
}

}  // namespace

bool parse_interface_dict(PyObject* dict, const char* attribute, long least_version, InterfaceDict& out) {
  out.attribute = attribute;
  out.dict = dict;
  if (!PyDict_Check(dict))
    return refuse(out, ErrorCode::kWrongType, "it is " + py::type_name(dict) + ", not a dict. The producer must mend it");
  PyObject *shape, *strides;
  if (!parse_version(out, least_version) || !parse_dtype(out) || !refuse_mask(out)) return false;
  if (!get(dict, py::names.shape, shape)) return false;
  if (shape == nullptr) return refuse(out, ErrorCode::kMalformed, "'shape' is missing. The producer must mend it");
  if (!py::parse_dims(shape, kOperation, "shape", out.shape)) return false;
  if (!get(dict, py::names.strides, strides)) return false;
  if (strides != nullptr && strides != Py_None) {
    if (!py::parse_dims(strides, kOperation, "strides", out.strides)) return false;
    if (out.strides.ndim != out.shape.ndim)
      return refuse(out, ErrorCode::kMalformed,
                    "'strides' has " + std::to_string(out.strides.ndim) + " entries and 'shape' " +
                        std::to_string(out.shape.ndim) + ". The producer must mend it");
  }
  return get(dict, py::names.data, out.data);
}

bool place_at_address(const InterfaceDict& interface, Tensor& tensor) {
  PyObject* data = interface.data;
  if (!PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2)
    return refuse(interface, ErrorCode::kWrongType,
                  "'data' is " + py::type_name(data) + "; it must be (address, read_only). The producer must mend it");
  std::uintptr_t address;
  if (!py::parse_address(PyTuple_GET_ITEM(data, 0), kOperation, "data[0]", address)) return false;
  const int readonly = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
  if (readonly < 0) return false;
  tensor.dl.data = reinterpret_cast<void*>(address);
  if (readonly != 0) tensor.flags |= kFlagReadOnly;
  return true;
}

Status lay_out(const InterfaceDict& interface, Tensor& tensor) {
  tensor.set_dtype(*interface.dtype);
  return build_layout<StrideUnit::kBytes>(tensor, interface.shape.ndim, interface.shape.values,
                                          interface.strides.ndim < 0 ? nullptr : interface.strides.values);
}

bool refuse(const InterfaceDict& interface, const Status& status) {
  return refuse(interface, status.code(), status.message());
}

}  // namespace dlbridge::array_interface
