// Diagnosis: what inspect(), the self-test runner and the tests look at. Cold, so pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/cuda_order.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/validate.h"
#include "frameworks/plan.h"
#include "frameworks/table.h"
#include "protocols/arrow/arrow.h"
#include "protocols/buffer/format.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/errors.h"
#include "protocols/common/streams.h"
#include "protocols/common/typestr.h"
#include "python/src/bridge.h"
#include "python/src/convert.h"
#include "python/src/kit/pybind.h"

namespace dlbridge::py {

namespace {

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
  out["shape"] =
      sane ? dims_or_none(t.ndim == 0 && t.shape == nullptr ? reinterpret_cast<std::int64_t*>(&out) : t.shape, t.ndim)
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
    row["typestr"] = dlbridge::format_typestr(d);
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
  throw_if_bad(dlbridge::parse_typestr(typestr, dtype), "parse_typestr()");
  return std::string(dtype->name);
}

// The tensor's memory under another description. Its own strides stay where no shape is given; else it must be dense,
// and with an offset, in bytes, the shape may be that of a part.
Status redescribe(const Tensor& source, const DTypeInfo& dtype, const DimsArgument& shape,
                  std::optional<std::uint64_t> offset, Tensor& out) {
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
  const std::int64_t room = source.nbytes() - out.nbytes();
  if (is_c_contiguous(source.dl) && (offset ? room >= 0 && *offset <= static_cast<std::uint64_t>(room) : room == 0)) {
    out.dl.data = static_cast<std::byte*>(source.dl.data) + offset.value_or(0);
    return {};
  }
  return malformed(std::to_string(source.nbytes()) + " bytes are there and the shape takes " +
                   std::to_string(out.nbytes()) + " of dense memory. Give a shape of the same size");
}

// Another view of `tensor`, which it holds: for consumers that cannot name a dtype or a flag.
pyb::object reinterpret(const pyb::object& object, const std::optional<std::string>& dtype_name,
                        const pyb::object& shape, std::optional<bool> readonly, std::optional<bool> padded,
                        std::optional<std::uint64_t> offset) {
  if (!is_tensor(object.ptr())) throw pyb::type_error("reinterpret(): the object is not a dlbridge.Tensor");
  const TensorObject* source = as_tensor(object.ptr());
  const DTypeInfo* dtype = dtype_name ? find_dtype_by_name(*dtype_name) : &source->tensor.dtype();
  if (dtype == nullptr) throw pyb::value_error("reinterpret(): dlbridge has no dtype '" + *dtype_name + "'");
  DimsArgument dims;
  if (Status why; !shape.is_none() && !parse_dims(shape.ptr(), "shape", dims, why)) {
    raise_refusal("reinterpret()", why);
    throw pyb::error_already_set();
  }
  Tensor out;
  const bool is_padded = padded.value_or(source->tensor.padded());
  out.flags = (readonly.value_or(source->tensor.readonly()) ? kFlagReadOnly : 0) |
              (is_padded && is_subbyte({dtype->code, dtype->bits, dtype->lanes}) ? kFlagPadded : 0);
  throw_if_bad(redescribe(source->tensor, *dtype, dims, offset, out), "reinterpret()");
  TensorObject* made = wrap_tensor(std::move(out), source->protocol, object.ptr());
  if (made == nullptr) throw pyb::error_already_set();
  return pyb::reinterpret_steal<pyb::object>(as_object(made));
}

// --- the table of frameworks ----------------------------------------------------------------------------------------

// What convert() does with a tensor, in words.
struct PlanText {
  const char* outcome;
  const char* rule;
  std::string reason;
  std::string remedy;
};

const char* rule_name(Violation violation) noexcept {
  switch (violation) {
    case Violation::kNone: return "";
    case Violation::kDType: return "dtype";
    case Violation::kRank:
    case Violation::kExtent: return "rank";
    case Violation::kDevice: return "device";
    case Violation::kReadOnly: return "read-only";
    case Violation::kStrides: return "strides";
    case Violation::kOverlap: return "overlap";
    case Violation::kAlignment: return "alignment";
  }
  return "";
}

PlanText plan(const pyb::object& object, const pyb::object& to) {
  if (!is_tensor(object.ptr())) throw pyb::type_error("plan(): the object is not a dlbridge.Tensor");
  bool failed = false;
  const frameworks::Framework* framework = find_target_framework(to.ptr(), failed);
  if (failed) throw pyb::error_already_set();
  if (framework == nullptr) return {"shared", "", "", ""};  // it knows best what it takes
  const Tensor& tensor = as_tensor(object.ptr())->tensor;
  const frameworks::Plan plan = frameworks::plan(*framework, tensor);
  auto [reason, remedy] = frameworks::explain(plan, *framework, tensor);
  return {plan.is_copy()             ? "copied"
          : plan.consumer != nullptr ? "shared"
                                     : "refused",
          rule_name(plan.violation), std::move(reason), std::move(remedy)};
}

pyb::dict consumers() {
  pyb::dict out;
  for (const frameworks::Framework* framework : frameworks::frameworks()) {
    pyb::dict row;
    DTypeSet taken = 0;
    bool writes = false, immutable = true;
    for (const frameworks::Consumer& consumer : framework->consumers) {
      taken |= consumer.takes.dtypes;
      writes |= consumer.needs.writable;
      immutable &= consumer.immutable;
    }
    pyb::list names, aliases;
    for (const DTypeInfo& d : kDTypes)
      if ((taken >> static_cast<unsigned>(d.id) & 1) != 0) names.append(std::string(d.name));
    for (const char* alias : framework->aliases) aliases.append(alias);
    row["module"] = framework->module;
    row["aliases"] = aliases;
    row["dtypes"] = names;
    row["writes"] = writes;
    row["immutable"] = immutable;
    out[framework->name] = row;
  }
  return out;
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
  out["tensors"] = live.tensors.total();
  out["exports"] = live.exports.total();
  out["copies"] = live_copies().load();
  return out;
}

pyb::object arrow_type(const pyb::object& object) {
  PyObject* const name = arrow_c::type_of(object.ptr(), "arrow_type()");
  if (name == nullptr && PyErr_Occurred() != nullptr) throw pyb::error_already_set();
  return name != nullptr ? pyb::reinterpret_steal<pyb::object>(name) : pyb::object(pyb::none());
}

// The array is read again: its producer's stream is the one of this moment.
void end_use(const pyb::object& source, const pyb::object& stream) {
  const Ref tensor(read_any(source.ptr(), "use()"));
  if (!tensor || !hand_back(as_tensor(tensor.get())->tensor, stream.ptr())) throw pyb::error_already_set();
}

void synchronize(const pyb::object& object) {
  if (!is_tensor(object.ptr())) throw pyb::type_error("synchronize(): the object is not a dlbridge.Tensor");
  const Tensor& tensor = as_tensor(object.ptr())->tensor;
  const Ordering ready = tensor.ready;
  if (ready.is_ready()) return;
  Status status;
  {
    const GilRelease released;
    status = cuda::synchronize(ready, tensor.dl.device.device_id);
  }
  throw_if_bad(status, "synchronize()");
}

}  // namespace

void init_diagnosis(PyObject* module) {
  pyb::module_ m = pyb::reinterpret_borrow<pyb::module_>(module);
  m.def("peek_capsule", &peek_capsule, "The fields of a DLPack capsule, which is not consumed.");
  m.def("dtypes", &dtype_rows, "The rows of the dtype table.");
  m.def("parse_format", &parse_format, pyb::arg("format"), pyb::arg("itemsize"),
        "The dtype name of a PEP 3118 format.");
  m.def("parse_typestr", &parse_typestr, pyb::arg("typestr"), "The dtype name of an array-interface typestr.");
  m.def("reinterpret", &reinterpret, pyb::arg("tensor"), pyb::kw_only(), pyb::arg("dtype") = pyb::none(),
        pyb::arg("shape") = pyb::none(), pyb::arg("readonly") = pyb::none(), pyb::arg("padded") = pyb::none(),
        pyb::arg("offset") = pyb::none(),
        "The tensor's memory, or with offset= a part of it, under another description, without a copy; the caller "
        "vouches for its meaning.");
  pyb::class_<PlanText>(m, "Plan", "What convert() does with a tensor; reason and remedy are empty where it is shared.")
      .def_readonly("outcome", &PlanText::outcome, "str: 'shared', 'copied' or 'refused'.")
      .def_readonly("rule", &PlanText::rule, "str: what of the tensor does not fit; empty where all does.")
      .def_readonly("reason", &PlanText::reason, "str: what was expected, and what was got.")
      .def_readonly("remedy", &PlanText::remedy, "str: what to do.");
  m.def("plan", &plan, pyb::arg("tensor"), pyb::arg("to"), pyb::pos_only(),
        "What convert(tensor, to) would do. Imports no framework of the table.");
  m.def("consumers", &consumers, "The table of frameworks: what each takes, all its kinds of arrays together.");
  m.def("end_use", &end_use, pyb::arg("source"), pyb::arg("stream"),
        "Makes the producer's stream, as it is now, wait for the work that `stream` holds.");
  m.def("synchronize", &synchronize, pyb::arg("tensor"), pyb::pos_only(),
        "Waits on the host until the tensor's data is ready: for consumers that no stream can be named to.");
  m.def("arrow_type", &arrow_type, pyb::arg("obj"), pyb::pos_only(),
        "The name of the object's type in Arrow, with unit and time zone; None where it speaks no Arrow.");
  m.def("cuda_info", &cuda_info, "Whether a CUDA driver was found, and why not.");
  m.def("live_counts", &live_counts, "Live tensors, exports and copies: for leak tests.");
}

}  // namespace dlbridge::py
