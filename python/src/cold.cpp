// Diagnosis: what inspect(), the self-test runner and the tests look at. Cold, so pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/validate.h"
#include "protocols/array_interface/typestr.h"
#include "protocols/buffer/format.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/errors.h"
#include "python/src/bridge.h"

namespace dlbridge::py {

namespace {

namespace pyb = ::pybind11;

void throw_if_bad(const Status& status, const char* operation) {
  if (status.ok()) return;
  raise(operation, status.issue());
  throw pyb::error_already_set();
}

pyb::object dims_or_none(const std::int64_t* values, int n) {
  if (values == nullptr) return pyb::none();
  return pyb::reinterpret_steal<pyb::object>(make_dims(values, n, 1));
}

void describe_dltensor(const DLTensor& t, pyb::dict& out) {
  out["device"] = pyb::make_tuple(static_cast<int>(t.device.device_type), t.device.device_id);
  out["dtype"] = dtype_name(t.dtype);
  out["ndim"] = t.ndim;
  out["data"] = reinterpret_cast<std::uintptr_t>(t.data);
  out["byte_offset"] = t.byte_offset;
  const bool sane = t.ndim >= 0 && t.ndim <= kMaxDims;
  out["shape"] = sane ? dims_or_none(t.ndim == 0 && t.shape == nullptr ? reinterpret_cast<std::int64_t*>(&out) : t.shape,
                                     t.ndim)
                      : pyb::object(pyb::none());
  out["strides"] = sane ? dims_or_none(t.strides, t.ndim) : pyb::object(pyb::none());
}

pyb::dict peek_capsule(const pyb::object& capsule) {
  if (!PyCapsule_CheckExact(capsule.ptr())) throw pyb::type_error("peek_capsule(): not a PyCapsule");
  const char* name = PyCapsule_GetName(capsule.ptr());
  PyErr_Clear();
  pyb::dict out;
  out["name"] = name != nullptr ? pyb::object(pyb::str(name)) : pyb::object(pyb::none());
  const std::string_view text = name != nullptr ? name : "";
  out["consumed"] = text == kLegacyUsedName || text == kVersionedUsedName;
  if (text == kVersionedName) {
    const auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), name));
    out["version"] = pyb::make_tuple(managed->version.major, managed->version.minor);
    if (managed->version.major != kDLPackVersion.major) return out;  // nothing after `flags` may be read
    out["flags"] = managed->flags;
    describe_dltensor(managed->dl_tensor, out);
  } else if (text == kLegacyName) {
    const auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), name));
    out["version"] = pyb::none();
    out["flags"] = pyb::none();
    describe_dltensor(managed->dl_tensor, out);
  }
  return out;
}

pyb::list dtype_rows() {
  pyb::list rows;
  for (const DTypeInfo& d : kDTypes) {
    pyb::dict row;
    row["name"] = std::string(d.name);
    row["code"] = static_cast<int>(d.code);
    row["bits"] = static_cast<int>(d.bits);
    row["lanes"] = static_cast<int>(d.lanes);
    row["itemsize"] = static_cast<int>(d.itemsize);
    row["typestr"] = array_interface::format_typestr(d);
    row["pep3118"] = std::string(d.pep3118);
    rows.append(row);
  }
  return rows;
}

std::string parse_format(const std::optional<std::string>& format, std::int64_t itemsize) {
  const DTypeInfo* dtype = nullptr;
  throw_if_bad(buffer::parse_format(format ? format->c_str() : nullptr, itemsize, dtype), "parse_format()");
  return std::string(dtype->name);
}

std::string parse_typestr(const std::string& typestr) {
  const DTypeInfo* dtype = nullptr;
  throw_if_bad(array_interface::parse_typestr(typestr, dtype), "parse_typestr()");
  return std::string(dtype->name);
}

// The tensor's memory under another description. Its own strides stay where no shape is given; else it must be dense.
Status redescribe(const Tensor& source, const DTypeInfo& dtype, const DimsArgument& shape, Tensor& out) {
  out.set_dtype(dtype);
  out.dl.data = source.dl.data;
  out.dl.device = source.dl.device;
  out.dl.byte_offset = source.dl.byte_offset;
  out.ready = source.ready;
  const bool keeps_shape = shape.ndim < 0;
  if (keeps_shape && dtype.itemsize != source.dtype().itemsize)
    return malformed("dtype " + std::string(dtype.name) + " has another itemsize than " +
                     std::string(source.dtype().name) + ". Give the shape, too");
  if (keeps_shape) return build_layout<StrideUnit::kElements>(out, source.dl.ndim, source.dl.shape, source.dl.strides);
  DLBRIDGE_TRY(build_layout<StrideUnit::kElements>(out, shape.ndim, shape.values, nullptr));
  if (is_c_contiguous(source.dl) && out.nbytes() == source.nbytes()) return {};
  return malformed(std::to_string(source.nbytes()) + " bytes are there and the shape takes " +
                   std::to_string(out.nbytes()) + " of dense memory. Give a shape of the same size");
}

// Another view of `tensor`, which it holds: for consumers that cannot name a dtype or a flag.
pyb::object reinterpret(const pyb::object& object, const std::optional<std::string>& dtype_name,
                        const pyb::object& shape, std::optional<bool> readonly, std::optional<bool> padded) {
  if (!is_tensor(object.ptr())) throw pyb::type_error("reinterpret(): the object is no dlbridge.Tensor");
  const TensorObject* source = as_tensor(object.ptr());
  const DTypeInfo* dtype = dtype_name ? find_dtype_by_name(*dtype_name) : &source->tensor.dtype();
  if (dtype == nullptr) throw pyb::value_error("reinterpret(): dlbridge has no dtype '" + *dtype_name + "'");
  DimsArgument dims;
  if (!shape.is_none() && !parse_dims(shape.ptr(), "reinterpret()", "shape", dims)) throw pyb::error_already_set();
  Tensor out;
  const bool is_padded = padded.value_or(source->tensor.padded());
  out.flags = (readonly.value_or(source->tensor.readonly()) ? kFlagReadOnly : 0) |
              (is_padded && is_subbyte({dtype->code, dtype->bits, dtype->lanes}) ? kFlagPadded : 0);
  throw_if_bad(redescribe(source->tensor, *dtype, dims, out), "reinterpret()");
  TensorObject* made = wrap_tensor(std::move(out), source->protocol, object.ptr());
  if (made == nullptr) throw pyb::error_already_set();
  return pyb::reinterpret_steal<pyb::object>(as_object(made));
}

pyb::dict cuda_info() {
  pyb::dict out;
  out["available"] = cuda::available();
  out["reason"] = cuda::unavailable_reason();
  out["device_count"] = cuda::device_count();
  out["driver_version"] = cuda::driver_version();
  return out;
}

pyb::dict live_counts() {
  pyb::dict out;
  out["tensors"] = live.tensors;
  out["exports"] = live.exports;
  out["copies"] = live_copies().load();
  return out;
}

}  // namespace

void init_cold(PyObject* module) {
  pyb::module_ m = pyb::reinterpret_borrow<pyb::module_>(module);
  m.def("peek_capsule", &peek_capsule, "The fields of a DLPack capsule, which is not consumed.");
  m.def("dtypes", &dtype_rows, "The rows of the dtype table.");
  m.def("parse_format", &parse_format, pyb::arg("format"), pyb::arg("itemsize"),
        "The dtype name of a PEP 3118 format.");
  m.def("parse_typestr", &parse_typestr, pyb::arg("typestr"), "The dtype name of an array-interface typestr.");
  m.def("reinterpret", &reinterpret, pyb::arg("tensor"), pyb::kw_only(), pyb::arg("dtype") = pyb::none(),
        pyb::arg("shape") = pyb::none(), pyb::arg("readonly") = pyb::none(), pyb::arg("padded") = pyb::none(),
        "The tensor's memory under another description, without a copy; the caller vouches for its meaning.");
  m.def("cuda_info", &cuda_info, "Whether a CUDA driver was found, and why not.");
  m.def("live_counts", &live_counts, "Live tensors, exports and copies: for leak tests.");
}

}  // namespace dlbridge::py
