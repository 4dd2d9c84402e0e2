#include "protocols/common/interface_dict.h"

#include <string>

#include "dlbridge/layout.h"
#include "dlbridge/validate.h"
#include "protocols/common/errors.h"
#include "protocols/common/typestr.h"

namespace dlbridge::py {

namespace {

bool refuse(const InterfaceDict& interface, ErrorCode code, const std::string& text) {
  interface.call.refuse(code, std::string(interface.attribute) + ": " + text);
  return false;
}

// False with a Python error set; null where the key is missing.
bool get(const InterfaceDict& interface, PyObject* key, Ref& out) {
  out = dict_item(interface.dict, key);
  return out || PyErr_Occurred() == nullptr;
}

bool parse_version(InterfaceDict& out, long least) {
  Ref version;
  if (!get(out, names.version, version)) return false;
  if (!version || !PyLong_Check(version.get()))
    return refuse(out, ErrorCode::kMalformed,
                  "'version' is missing or not an integer. This must be fixed in the producer");
  out.version = PyLong_AsLong(version.get());
  if (out.version == -1 && PyErr_Occurred() != nullptr) return false;
  if (out.version >= least) return true;  // later versions only add keys: they are not rejected
  return refuse(out, ErrorCode::kMalformed,
                "'version' is " + std::to_string(out.version) + "; version " + std::to_string(least) +
                    " and later can be read. Update the producer");
}

bool parse_dtype(InterfaceDict& out) {
  Ref typestr;
  if (!get(out, names.typestr, typestr)) return false;
  if (!typestr || !PyUnicode_Check(typestr.get()))
    return refuse(out, ErrorCode::kMalformed, "'typestr' is missing or not a str. This must be fixed in the producer");
  Py_ssize_t length;
  const char* text = PyUnicode_AsUTF8AndSize(typestr.get(), &length);
  if (text == nullptr) return false;
  const Status status = parse_typestr({text, static_cast<std::size_t>(length)}, out.dtype, out.call.swapped);
  if (status.ok()) return true;
  return refuse(out, status.code(), status.message());
}

bool refuse_mask(InterfaceDict& out) {
  Ref mask;
  if (!get_optional(out, names.mask, mask)) return false;
  if (!mask) return true;
  return refuse(out, ErrorCode::kRefused,
                "'mask' is set, and DLPack cannot say which elements are valid. Fill the masked elements first, for "
                "example a.filled(0)");
}

PyObject* make_strides(const Tensor& tensor) {
  if (is_c_contiguous(tensor.dl)) return Ref::borrow(Py_None).release();
  return make_dims(tensor.dl.strides, tensor.dl.ndim, tensor.itemsize());
}

PyObject* make_data(const Tensor& tensor) {
  Ref pair(PyTuple_New(2));
  PyObject* address = PyLong_FromUnsignedLongLong(reinterpret_cast<std::uintptr_t>(tensor.dl.data));
  if (!pair || address == nullptr) {
    Py_XDECREF(address);
    return nullptr;
  }
  PyTuple_SET_ITEM(pair.get(), 0, address);
  PyTuple_SET_ITEM(pair.get(), 1, Ref::borrow(tensor.readonly() ? Py_True : Py_False).release());
  return pair.release();
}

PyObject* make_pattern(const DTypeInfo& dtype, int version, bool with_stream) {
  const std::string typestr = format_typestr(dtype);
  const Ref text(PyUnicode_InternFromString(typestr.c_str()));
  const Ref number(PyLong_FromLong(version));
  Ref dict(PyDict_New());
  const bool good = dict && text && number && PyDict_SetItem(dict.get(), names.shape, Py_None) == 0 &&
                    PyDict_SetItem(dict.get(), names.typestr, text.get()) == 0 &&
                    PyDict_SetItem(dict.get(), names.data, Py_None) == 0 &&
                    PyDict_SetItem(dict.get(), names.strides, Py_None) == 0 &&
                    PyDict_SetItem(dict.get(), names.version, number.get()) == 0 &&
                    (!with_stream || PyDict_SetItem(dict.get(), names.stream, Py_None) == 0);
  return good ? dict.release() : nullptr;
}

// A dictionary of the dtype with all its keys, to be copied and filled in: quicker than making one by one.
// Borrowed, kept for good; null where the dtype has no typestr, or with a Python error set.
PyObject* pattern_of(const DTypeInfo& dtype, int version, bool with_stream) {
  static constinit Atomic<PyObject*> patterns[2][2][kDTypes.size()];  // version 2 and 3
  if (dtype.kind == 0) return nullptr;
  return find_once(patterns[version == 2][with_stream][static_cast<std::size_t>(dtype.id)],
                   [&] { return make_pattern(dtype, version, with_stream); });
}

}  // namespace

bool get_optional(const InterfaceDict& interface, PyObject* key, Ref& out) {
  if (!get(interface, key, out)) return false;
  if (out.get() == Py_None) out = Ref();
  return true;
}

bool parse_interface_dict(long least_version, InterfaceDict& out) {
  if (!PyDict_Check(out.dict))
    return refuse(out, ErrorCode::kWrongType,
                  "it is " + type_name(out.dict) + ", not a dict. This must be fixed in the producer");
  Ref shape, strides;
  if (!parse_version(out, least_version) || !parse_dtype(out) || !refuse_mask(out)) return false;
  if (!get(out, names.shape, shape)) return false;
  if (!shape) return refuse(out, ErrorCode::kMalformed, "'shape' is missing. This must be fixed in the producer");
  if (!parse_dims(shape.get(), "shape", out.shape, out.call.refusal)) return false;
  if (!get_optional(out, names.strides, strides)) return false;
  if (strides) {
    if (!parse_dims(strides.get(), "strides", out.strides, out.call.refusal)) return false;
    if (out.strides.ndim != out.shape.ndim)
      return refuse(out, ErrorCode::kMalformed,
                    "'strides' has " + std::to_string(out.strides.ndim) + " entries and 'shape' " +
                        std::to_string(out.shape.ndim) + ". This must be fixed in the producer");
  }
  return get(out, names.data, out.data);
}

bool place_at_address(const InterfaceDict& interface, Tensor& tensor) {
  PyObject* data = interface.data.get();
  if (!PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2)
    return refuse(
        interface, ErrorCode::kWrongType,
        "'data' is " + type_name(data) + "; it must be (address, read_only). This must be fixed in the producer");
  std::uintptr_t address;
  if (!parse_address(PyTuple_GET_ITEM(data, 0), "data[0]", address, interface.call.refusal)) return false;
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

Read finish(const InterfaceDict& interface, const Status& status, PyObject* object, TensorObject* self) {
  if (!status.ok()) {
    refuse(interface, status);
    return Read::kFailed;
  }
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

bool refuse(const InterfaceDict& interface, const Status& status) {
  return refuse(interface, status.code(), status.message());
}

PyObject* refuse_typeless(const Tensor& tensor, const char* attribute) {
  PyErr_Format(PyExc_AttributeError,
               "%s: dtype %s has no typestr, so the array interface cannot carry it. Use DLPack: the tensor has "
               "__dlpack__",
               attribute, std::string(tensor.dtype().name).c_str());
  return nullptr;
}

PyObject* make_interface_dict(const Tensor& tensor, const char* attribute, int version, bool with_stream) {
  PyObject* pattern = pattern_of(tensor.dtype(), version, with_stream);
  if (pattern == nullptr) return tensor.dtype().kind == 0 ? refuse_typeless(tensor, attribute) : nullptr;
  const Ref shape(make_dims(tensor.dl.shape, tensor.dl.ndim, 1));
  const Ref strides(make_strides(tensor));
  const Ref data(make_data(tensor));
  if (!shape || !strides || !data) return nullptr;
  Ref dict(PyDict_Copy(pattern));
  if (!dict || PyDict_SetItem(dict.get(), names.shape, shape.get()) != 0 ||
      PyDict_SetItem(dict.get(), names.data, data.get()) != 0)
    return nullptr;
  if (strides.get() != Py_None && PyDict_SetItem(dict.get(), names.strides, strides.get()) != 0) return nullptr;
  return dict.release();
}

}  // namespace dlbridge::py
