// dlbridge._core._c_api: the readers of protocols/ for the arguments and results of other extension modules.
#include "dlbridge/c_api.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "dlbridge.h"
#include "dlbridge/argument_text.h"
#include "dlbridge/cuda_order.h"
#include "dlbridge/dlpack_codec.h"
#include "frameworks/nd.h"
#include "frameworks/numpy.h"
#include "protocols/common/record_tensor.h"
#include "protocols/common/streams.h"
#include "python/src/bridge.h"
#include "python/src/convert.h"
#include "python/src/kit/tables.h"

namespace dlbridge::py {

namespace {

void copy_text(const std::string& text, char* out, std::size_t capacity) noexcept {
  if (capacity == 0) return;
  const std::size_t n = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

// --- read -----------------------------------------------------------------------------------------------------------

// The extension knows which of its functions and arguments it reads for, and says so itself.
constexpr char kUnnamed[] = "";

int read(PyObject* object, c_api::Record* out, std::int64_t* dims, std::int32_t capacity) noexcept {
  return guarded([&] {
    if (Py_TYPE(object) == frameworks::numpy_array_type) [[likely]] {
      RecordTensor borrowed(*out, dims, capacity);
      if (frameworks::borrow_numpy(object, borrowed)) [[likely]] {
        out->ready_kind = static_cast<std::uint8_t>(Ordering::Kind::kReady);
        out->protocol = static_cast<std::uint8_t>(Protocol::kArrayInterface);
        Py_INCREF(object);
        out->holder = object;
        return 0;
      }
    }
    auto* self = as_tensor(settled(as_tensor(read_any(object, kUnnamed)), "dlbridge::Tensor from Python"));
    if (self == nullptr) return -1;
    const Tensor& tensor = self->tensor;
    out->dl = tensor.dl;
    out->flags = tensor.flags;
    out->size = tensor.size;
    out->ready_kind = static_cast<std::uint8_t>(tensor.ready.kind);
    out->ready_handle = tensor.ready.handle;
    out->protocol = static_cast<std::uint8_t>(self->protocol);
    out->holder = as_object(self);
    return 0;
  });
}

// Before the message of the readers; what Python code of the producer's raises is its own affair.
void name_argument(const std::string& prefix) {
  Ref error = take_exception();
  const Ref traceback(PyException_GetTraceback(error.get()));
  const Ref arguments = owned(PyObject_GetAttrString(error.get(), "args"));
  if (!traceback && PyTuple_CheckExact(arguments.get()) && PyTuple_GET_SIZE(arguments.get()) == 1 &&
      PyUnicode_CheckExact(PyTuple_GET_ITEM(arguments.get(), 0))) {
    const char* said = PyUnicode_AsUTF8(PyTuple_GET_ITEM(arguments.get(), 0));
    checked(said != nullptr);
    const Ref text = owned(PyUnicode_FromString((prefix + said).c_str()));
    const Ref named = owned(PyTuple_Pack(1, text.get()));
    checked(PyObject_SetAttrString(error.get(), "args", named.get()));
  }
  set_exception(std::move(error));
}

Requirement requirement_of_need(const c_api::Need& need) {
  Requirement r;
  if (need.dtype.bits != 0) {
    const DTypeInfo* dtype = find_dtype(need.dtype);
    if (dtype == nullptr) throw_error(PyExc_ValueError, "dlbridge_get(): the dtype that is asked for is not known");
    r.dtypes = dtypes(dtype->id);
  }
  const DeviceTypeInfo* device = need.device_type != 0 ? find_device_type(need.device_type) : nullptr;
  if (device == nullptr && need.device_type != 0)
    throw_error(PyExc_ValueError, "dlbridge_get(): the device type that is asked for, %d, is not known",
                static_cast<int>(need.device_type));
  r.devices = device == nullptr ? kOnHost : devices(device->type);
  if (need.ndim >= 0) r.min_rank = r.max_rank = need.ndim;
  if (need.order == 'C' || need.order == 'F')
    r.strides = need.order == 'C' ? stride_rule::c_contig : stride_rule::f_contig;
  r.writable = r.distinct = need.writable != 0;
  r.element_aligned = true;
  return r;
}

// Its extents stay where they are, and it owns nothing.
void point_at(Tensor& t, const c_api::Record& record) noexcept {
  t.dl = record.dl;
  t.set_dtype(*find_dtype(record.dl.dtype));
  t.flags = record.flags;
  t.size = record.size;
}

int read_argument(PyObject* object, const c_api::Need* need, const char* function, const char* argument,
                  c_api::Record* out, std::int64_t* dims, std::int32_t capacity) noexcept {
  return guarded([&] {
    const std::string prefix = std::string(function) + "(): argument '" + argument + "': ";
    const Requirement r = requirement_of_need(*need);
    if (read(object, out, dims, capacity) != 0) {
      name_argument(prefix);
      return -1;
    }
    Tensor t;
    point_at(t, *out);
    const Violation v = find_violation(t, r);
    if (v == Violation::kNone) [[likely]]
      return 0;
    const Ref holder(std::exchange(out->holder, nullptr));
    const std::string reason = dlbridge::detail::refusal_text(v, t, r, argument, type_name(object));
    PyErr_SetString(PyExc_TypeError, (prefix + reason).c_str());
    return -1;
  });
}

Requirement requirement_of_rules(const c_api::Rules& rules) noexcept {
  Requirement r;
  if (rules.dtype_count > 0) r.dtypes = 0;
  for (const DLDataType& dtype : std::span(rules.dtypes, static_cast<std::size_t>(rules.dtype_count)))
    if (const DTypeInfo* row = find_dtype(dtype); row != nullptr) r.dtypes |= dtypes(row->id);
  r.devices = rules.devices;
  r.min_rank = rules.min_rank;
  r.max_rank = rules.max_rank;
  if (rules.extents != nullptr) r.extents = {rules.extents, rules.max_rank};
  r.strides = static_cast<stride_rule>(rules.strides);
  r.writable = rules.writable != 0;
  r.distinct = rules.distinct != 0;
  r.alignment = rules.alignment;
  r.element_aligned = rules.element_aligned != 0;
  return r;
}

// What a DLPack capsule holds, without taking it; false where it is spent or nothing that can be read.
bool peek_capsule(PyObject* capsule, Tensor& out) {
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    const auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    return decode_dltensor(managed->dl_tensor, 0, out).ok();
  }
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return false;
  const auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  return managed->version.major == kDLPackVersion.major &&
         decode_dltensor(managed->dl_tensor, managed->flags, out).ok();
}

int examine(PyObject* object, const c_api::Record* record, const c_api::Rules* rules, const char* argument,
            PyObject** why, std::int32_t* distance) noexcept {
  return guarded([&] {
    Tensor t;
    if (record != nullptr) point_at(t, *record);
    else if (!peek_capsule(object, t)) return 0;  // the reader says why not
    const Requirement r = requirement_of_rules(*rules);
    const Requirement shape_only{.min_rank = r.min_rank, .max_rank = r.max_rank, .extents = r.extents};
    Violation v = rules->shape_first != 0 ? find_violation(t, shape_only) : Violation::kNone;
    if (v == Violation::kNone) v = find_violation(t, r);
    if (why == nullptr || v == Violation::kNone) return static_cast<int>(v);
    const std::string text = dlbridge::detail::refusal_text(v, t, r, argument, type_name(object));
    *why = owned(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))).release();
    *distance = dlbridge::detail::distance(t, r);
    return static_cast<int>(v);
  });
}

// What can only be read as a copy is copied: numbers of the opposite byte order, and misaligned ones.
Ref read_or_copy(PyObject* object) {
  if (Ref tensor(read_any(object, kUnnamed)); tensor) return tensor;
  checked(!PyCapsule_CheckExact(object) && PyErr_ExceptionMatches(PyExc_BufferError) != 0);
  PyErr_Clear();
  static PythonFunction copied("dlbridge._may_convert", "copied");
  return copied(object);
}

PyObject* adapt(PyObject* object, const c_api::Wanted* wanted) noexcept {
  return guarded([&] {
    static PythonFunction adapt("dlbridge._may_convert", "adapt");
    const Ref tensor = read_or_copy(object);
    const DTypeInfo* dtype = wanted->dtype.bits != 0 ? find_dtype(wanted->dtype) : nullptr;
    const DeviceTypeInfo* device = wanted->device_type != 0 ? find_device_type(wanted->device_type) : nullptr;
    const std::string dtype_text(dtype != nullptr ? dtype->name : "");
    const std::string device_text(device != nullptr ? device->name : "");
    return PyObject_CallFunction(adapt.get(), "OzzC", tensor.get(), dtype != nullptr ? dtype_text.c_str() : nullptr,
                                 device != nullptr ? device_text.c_str() : nullptr, wanted->order);
  });
}

// --- results --------------------------------------------------------------------------------------------------------

constexpr char kToPython[] = "dlbridge::Tensor to Python";

PyObject* wrap(DLManagedTensorVersioned* managed, std::uint8_t ready_kind, std::uintptr_t ready_handle) noexcept {
  return guarded([&] {
    Tensor tensor;
    throw_if_bad(import_managed(managed, tensor), kToPython);
    tensor.ready = Ordering{static_cast<Ordering::Kind>(ready_kind), ready_handle};
    return settled(wrap_tensor(std::move(tensor), Protocol::kDLPack, nullptr), kToPython);
  });
}

PyObject* result_like(const c_api::Made* made, PyObject* example) noexcept {
  return guarded([&]() -> PyObject* {
    Tensor tensor;
    Owner owner(made->context, made->release);
    throw_if_bad(decode_dltensor(made->dl, made->flags, tensor), kToPython);
    tensor.owner = std::move(owner);
    tensor.ready = Ordering{static_cast<Ordering::Kind>(made->ready_kind), made->ready_handle};
    if (example != nullptr && find_own_target(example) == &frameworks::kNd && frameworks::kNd.shares(tensor) &&
        frameworks::is_nd_imported())
      return frameworks::make_ndarray(tensor);
    Ref wrapped = owned(settled(wrap_tensor(std::move(tensor), Protocol::kDLPack, nullptr), kToPython));
    return example != nullptr ? convert_like(wrapped.get(), example) : wrapped.release();
  });
}

PyObject* convert_to(PyObject* tensor, const char* name) noexcept {
  const Ref to(PyUnicode_InternFromString(name));
  if (!to) return nullptr;
  PyObject* const arguments[] = {tensor, to.get()};
  return convert(nullptr, arguments, 2, nullptr);
}

void release(PyObject* object) noexcept { drop_anywhere(object); }

// --- streams --------------------------------------------------------------------------------------------------------

int parse_stream_argument(PyObject* argument, std::intptr_t* out) noexcept {
  return guarded([&] {
    StreamArgument stream;
    checked(parse_stream(argument, "stream", stream, StreamUse::kWork));
    if (stream.kind == StreamArgument::Kind::kHandle) throw_if_bad(check_stream(stream.handle), "stream");
    *out = stream.kind == StreamArgument::Kind::kNone ? 0 : static_cast<std::intptr_t>(stream.handle);
    return 0;
  });
}

int order(DLDevice device, std::uint8_t ready_kind, std::uintptr_t ready_handle, std::uintptr_t stream, char* message,
          std::size_t capacity) noexcept {
  try {
    const Ordering ready{static_cast<Ordering::Kind>(ready_kind), ready_handle};
    const Status status = cuda::order(stream == 0 ? kLegacyStream : stream, ready, device.device_id);
    if (status.ok()) return 0;
    copy_text(status.message(), message, capacity);
  } catch (...) {
    copy_text("out of memory", message, capacity);
  }
  return -1;
}

std::uintptr_t current_stream(std::int32_t device_id) noexcept { return cuda::current_stream(device_id); }

// --- errors ---------------------------------------------------------------------------------------------------------

void raise_code(std::uint8_t code, const char* message) noexcept {
  const auto known = std::min(code, static_cast<std::uint8_t>(ErrorCode::kCuda));
  PyErr_SetString(class_for(static_cast<ErrorCode>(known)), message);
}

void write_type_name(PyObject* object, char* out, std::size_t capacity) noexcept {
  try {
    copy_text(type_name(object), out, capacity);
  } catch (...) {
    copy_text("object", out, capacity);
  }
}

constexpr c_api::Table kTable{
    sizeof(c_api::Table),
    c_api::kMajor,
    c_api::kMinor,
    0,
    read,
    adapt,
    wrap,
    convert_to,
    release,
    parse_stream_argument,
    order,
    current_stream,
    raise_code,
    write_type_name,
    convert_like,
    read_argument,
    examine,
    result_like,
};

// Where extensions that were built before look: functions are appended to the table, and nothing moves.
static_assert(sizeof(void*) != 8 ||
              (offsetof(c_api::Table, read) == 16 && offsetof(c_api::Table, adapt) == 24 &&
               offsetof(c_api::Table, wrap) == 32 && offsetof(c_api::Table, convert) == 40 &&
               offsetof(c_api::Table, release) == 48 && offsetof(c_api::Table, parse_stream) == 56 &&
               offsetof(c_api::Table, order) == 64 && offsetof(c_api::Table, current_stream) == 72 &&
               offsetof(c_api::Table, raise) == 80 && offsetof(c_api::Table, type_name) == 88 &&              // 1.0
               offsetof(c_api::Table, convert_like) == 96 && offsetof(c_api::Table, read_argument) == 104 &&  // 1.1
               offsetof(c_api::Table, examine) == 112 &&                                                      // 1.2
               offsetof(c_api::Table, result_like) == 120 && sizeof(c_api::Table) == 128));                   // 1.3
static_assert(sizeof(void*) != 8 ||
              (offsetof(c_api::Record, flags) == 48 && offsetof(c_api::Record, size) == 56 &&
               offsetof(c_api::Record, ready_handle) == 64 && offsetof(c_api::Record, ready_kind) == 72 &&
               offsetof(c_api::Record, protocol) == 73 && offsetof(c_api::Record, holder) == 80 &&
               sizeof(c_api::Record) == 88 && offsetof(c_api::Wanted, device_type) == 4 &&
               offsetof(c_api::Wanted, order) == 8 && sizeof(c_api::Wanted) == 12 &&
               offsetof(c_api::Need, device_type) == 4 && offsetof(c_api::Need, ndim) == 8 &&
               offsetof(c_api::Need, order) == 12 && offsetof(c_api::Need, writable) == 13 &&
               sizeof(c_api::Need) == 16 && offsetof(c_api::Made, flags) == 48 &&
               offsetof(c_api::Made, ready_handle) == 56 && offsetof(c_api::Made, ready_kind) == 64 &&
               offsetof(c_api::Made, context) == 72 && offsetof(c_api::Made, release) == 80 &&
               sizeof(c_api::Made) == 88));

// The same table for C.
static_assert(sizeof(dlbridge_table) == sizeof(c_api::Table) && sizeof(dlbridge_record) == sizeof(c_api::Record) &&
              sizeof(dlbridge_need) == sizeof(c_api::Need) && DLBRIDGE_C_MAJOR == c_api::kMajor &&
              DLBRIDGE_C_MINOR == c_api::kMinor && offsetof(dlbridge_table, wrap) == offsetof(c_api::Table, wrap) &&
              offsetof(dlbridge_table, read_argument) == offsetof(c_api::Table, read_argument) &&
              offsetof(dlbridge_table, examine) == offsetof(c_api::Table, examine) &&
              sizeof(dlbridge_rules) == sizeof(c_api::Rules) &&
              offsetof(dlbridge_rules, shape_first) == offsetof(c_api::Rules, shape_first) &&
              offsetof(dlbridge_record, holder) == offsetof(c_api::Record, holder) &&
              offsetof(dlbridge_need, writable) == offsetof(c_api::Need, writable) &&
              offsetof(dlbridge_table, result_like) == offsetof(c_api::Table, result_like) &&
              sizeof(dlbridge_made) == sizeof(c_api::Made) &&
              offsetof(dlbridge_made, release) == offsetof(c_api::Made, release));

}  // namespace

void init_c_api(PyObject* module) {
  // The capsule keeps the name's address; the table is read-only, whatever a capsule's pointer says.
  const Ref capsule = owned(PyCapsule_New(const_cast<c_api::Table*>(&kTable), c_api::kCapsuleName, nullptr));
  checked(PyModule_AddObjectRef(module, "_c_api", capsule.get()));
}

}  // namespace dlbridge::py
