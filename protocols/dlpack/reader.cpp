// Capsules and objects with __dlpack__: acquire (call, recheck the capsule), commit (rename at once), decode, validate.
#include <cstring>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/dlpack_codec.h"
#include "protocols/common/copying.h"
#include "protocols/common/errors.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::dlpack {

using py::Read;

namespace {

// Renames the capsule: from then on exactly one owner is left, the deleter of what is returned. Null where it is none
// of this name, also for the second of two threads.
template <class Managed>
Managed* take_out(PyObject* capsule, const char* name, const char* used_name) noexcept {
  const py::CriticalSection of_capsule(capsule);
  const char* now = PyCapsule_GetName(capsule);
  if (now == nullptr || std::strcmp(now, name) != 0) return nullptr;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, now));
  return managed != nullptr && PyCapsule_SetName(capsule, used_name) == 0 ? managed : nullptr;
}

template <class Managed>
Read take_managed(Managed* managed, py::ReadCall& call, py::TensorObject* self) {
  // After a rename the producer's destructor leaves the struct alone; a destructor that does not look would free it.
  if (Status status = import_managed(managed, self->tensor); !status.ok()) return call.refuse(std::move(status));
  // Who asked for no stream gets data that is ready on the legacy default stream (DLPack, array API).
  Tensor& tensor = self->tensor;
  if (is_cuda(tensor.dl.device) && tensor.size != 0) tensor.ready = Ordering::on_stream(kLegacyStream);
  return Read::kDone;
}

Read refuse_capsule_name(const char* name, py::ReadCall& call) {
  if (name != nullptr && (std::strcmp(name, kLegacyUsedName) == 0 || std::strcmp(name, kVersionedUsedName) == 0)) {
    return call.refuse(malformed(std::string("the DLPack capsule was already consumed (its name is '") + name +
                                 "'); a capsule can be imported once (DLPack). Ask the producer for a new one"));
  }
  return call.refuse(
      ErrorCode::kWrongType,
      std::string("the capsule is named ") + (name == nullptr ? "NULL" : "'" + std::string(name) + "'") +
          ", not 'dltensor' or 'dltensor_versioned'; it is not a DLPack capsule. Pass what __dlpack__() returns");
}

struct CallPlan {
  bool with_stream = false;  // after the call: whether the producer took it
  StreamHandle stream = 0;
  bool ask_host_copy = false;  // dl_device=(1, 0), copy=None: a device that dlbridge cannot read itself
};

py::Ref call_with(PyObject* object, PyObject* kwnames, PyObject* const* values) {
  PyObject* args[4] = {object};
  const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < count; ++i) args[i + 1] = values[i];
  return py::Ref(py::outlive_thread_exit(
      [&] { return PyObject_VectorcallMethod(py::names.dlpack, args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames); }));
}

// Newest signature first; an older producer answers an unknown keyword with TypeError, and only then is it asked
// again with fewer. The first error stays on the chain, so that a TypeError from inside a producer is not lost.
py::Ref call_dlpack(PyObject* object, CallPlan& plan) {
  const py::Ref stream(plan.with_stream ? PyLong_FromUnsignedLongLong(plan.stream) : nullptr);
  if (plan.with_stream && !stream) return {};
  PyObject* full[3];
  PyObject* full_names = py::names.kw_max_version;
  if (plan.ask_host_copy) {
    full[0] = py::names.max_version_value, full[1] = py::names.host_device, full[2] = Py_None;
    full_names = py::names.kw_max_version_dl_device_copy;
  } else if (plan.with_stream) {
    full[0] = stream.get(), full[1] = py::names.max_version_value;
    full_names = py::names.kw_stream_max_version;
  } else {
    full[0] = py::names.max_version_value;
  }
  py::Ref capsule = call_with(object, full_names, full);
  if (capsule || plan.ask_host_copy || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;

  py::Ref first = py::take_exception();
  if (plan.with_stream) {
    PyObject* const only_stream[] = {stream.get()};
    capsule = call_with(object, py::names.kw_stream, only_stream);
    if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
    PyErr_Clear();
    plan.with_stream = false;
  }
  capsule = call_with(object, nullptr, nullptr);
  if (!capsule) {
    py::Ref last = py::take_exception();
    PyException_SetContext(last.get(), first.release());
    py::set_exception(std::move(last));
  }
  return capsule;
}

// __dlpack_device__ where there is one. A device is needed before the call only to choose the stream.
bool query_device(PyObject* object, py::ReadCall& call, DLDevice& device) {
  const py::Ref method = py::optional_attribute(object, py::names.dlpack_device);
  if (!method) {
    device = {kDLCPU, 0};
    return PyErr_Occurred() == nullptr;
  }
  const py::Ref pair(  // an AttributeError from in there is no absence
      py::outlive_thread_exit([&] { return PyObject_CallNoArgs(method.get()); }));
  return pair && parse_device_pair(pair.get(), "__dlpack_device__()", device, call.refusal);
}

// CUDA producers get an explicit stream of ours to order their work before: None would mean the legacy default
// stream, which other streams wait for and which a graph capture does not survive.
Status plan_stream(DLDevice device, CallPlan& plan) {
  if (!is_cuda(device)) return {};
  DLBRIDGE_TRY(cuda::relay_stream(device.device_id, plan.stream));
  plan.with_stream = true;
  return {};
}

}  // namespace

bool parse_device_pair(PyObject* pair, const char* argument, DLDevice& out, Status& why) {
  long parts[2] = {0, 0};
  bool good = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2;
  for (int i = 0; good && i < 2; ++i) {
    PyObject* part = PyTuple_GET_ITEM(pair, i);
    if (!(good = PyIndex_Check(part) != 0)) break;
    // Enumerations (torch's DLDeviceType) are ints or have __index__.
    const py::Ref number(py::outlive_thread_exit([&] { return PyNumber_Index(part); }));
    if (!number) return false;
    int overflow = 0;
    parts[i] = PyLong_AsLongAndOverflow(number.get(), &overflow);
    good = overflow == 0 && parts[i] >= INT32_MIN && parts[i] <= INT32_MAX;
  }
  if (!good) {
    why =
        Status(ErrorCode::kWrongType, std::string(argument) + " is not a pair of integers but " + py::type_name(pair) +
                                          "; DLPack names a device as (device_type, device_id), for example (1, 0)");
    return false;
  }
  out = {static_cast<DLDeviceType>(parts[0]), static_cast<std::int32_t>(parts[1])};
  return true;
}

Read read_capsule(PyObject* capsule, py::ReadCall& call, py::TensorObject* self) {
  if (auto* managed = take_out<DLManagedTensorVersioned>(capsule, kVersionedName, kVersionedUsedName))
    return take_managed(managed, call, self);
  if (auto* managed = take_out<DLManagedTensor>(capsule, kLegacyName, kLegacyUsedName))
    return take_managed(managed, call, self);
  PyErr_Clear();
  return refuse_capsule_name(PyCapsule_GetName(capsule), call);
}

Read read_object(PyObject* object, std::optional<DLDevice> target, py::ReadCall& call, py::TensorObject* self) {
  DLDevice device;
  if (!query_device(object, call, device)) return Read::kFailed;
  const DeviceTypeInfo* known = find_device_type(device.device_type);
  if (known == nullptr)
    return call.refuse(refused("__dlpack_device__() names device type " + std::to_string(device.device_type) +
                               ", which DLPack 1.3 does not have. Copy the array to a known device first"));
  CallPlan plan;
  plan.ask_host_copy = target && is_host(*target) && !is_host(device) && !is_cuda(device);
  Status status = plan_stream(device, plan);
  // Libraries refuse tensors of a device that is not current (PyTorch did): make it so for the call.
  std::optional<cuda::DeviceGuard> guard;
  if (status.ok() && is_cuda(device)) status = guard.emplace().enter(device.device_id);
  if (!status.ok()) return call.refuse(std::move(status));
  py::Ref capsule = call_dlpack(object, plan);
  guard.reset();
  if (!capsule) return Read::kFailed;
  if (!PyCapsule_CheckExact(capsule.get()))
    return call.refuse(ErrorCode::kWrongType, "__dlpack__() of " + py::type_name(object) + " returned " +
                                                  py::type_name(capsule.get()) +
                                                  ", not a PyCapsule (DLPack). This must be fixed in the producer");
  const Read result = read_capsule(capsule.get(), call, self);
  if (result != Read::kDone) {
    py::ErrorGuard error;  // the capsule's destructor may be Python code, which must not see our error pending
    capsule = py::Ref();
    return result;
  }
  // What the capsule says counts: pinned PyTorch tensors announce one device and deliver another.
  if (plan.with_stream) self->tensor.ready = Ordering::on_stream(plan.stream);
  if (!is_cuda(self->tensor.dl.device)) [[likely]] {
    if (status = py::wait_on_host(self->tensor, device.device_id); !status.ok()) return call.refuse(std::move(status));
  }
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::dlpack
