// asdlpack(): chooses the reader, falls back where it refuses, and does what stream=, device= and copy= ask for.
#include <optional>
#include <string>
#include <string_view>

#include "dlbridge/cuda_order.h"
#include "protocols/common/copying.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/buffer/buffer.h"
#include "protocols/common/bool_bytes.h"
#include "protocols/common/errors.h"
#include "protocols/common/streams.h"
#include "protocols/cuda_array_interface/cuda_array_interface.h"
#include "protocols/cuda_array_interface/cupy_reader.h"
#include "python/src/bridge.h"
#include "python/src/routes.h"

namespace dlbridge::py {

namespace {

constexpr char kOperation[] = "asdlpack()";
using dlpack::Read;

struct Options {
  Protocol protocol = Protocol::kNone;
  StreamArgument stream;
  std::optional<DLDevice> device;
  bool must_copy = false;
  bool never_copy = false;
};

// --- readers, in the order in which they are preferred ----------------------------------------------------------------

Read read_dlpack(PyObject* object, const Options& options, TensorObject* self) {
  if (PyCapsule_CheckExact(object)) return dlpack::read_capsule(object, self);
  // A property that raises is a refusal, not an absence.
#if PY_VERSION_HEX >= 0x030D0000
  const int found = PyObject_HasAttrWithError(object, names.dlpack);
#else
  PyObject* method = nullptr;
  const int found = _PyObject_LookupAttr(object, names.dlpack, &method);
  Py_XDECREF(method);
#endif
  if (found <= 0) return found < 0 ? Read::kFailed : Read::kAbsent;
  return dlpack::read_object(object, options.device, self);
}
Read read_cuda(PyObject* object, const Options&, TensorObject* self) {
  return cuda_array_interface::read(object, self);
}
Read read_struct(PyObject* object, const Options&, TensorObject* self) {
  return array_interface::read_struct(object, self);
}
Read read_dict(PyObject* object, const Options&, TensorObject* self) {
  return array_interface::read_dict(object, self);
}
Read read_buffer(PyObject* object, const Options&, TensorObject* self) { return buffer::read(object, self); }

struct Reader {
  Protocol protocol;
  const char* attribute;
  Read (*read)(PyObject*, const Options&, TensorObject*);
};
constexpr Reader kReaders[] = {
    {Protocol::kDLPack, "__dlpack__", read_dlpack},
    {Protocol::kCudaArrayInterface, "__cuda_array_interface__", read_cuda},
    {Protocol::kArrayInterface, "__array_struct__", read_struct},
    {Protocol::kArrayInterface, "__array_interface__", read_dict},
    {Protocol::kBuffer, "buffer", read_buffer},
};

// --- what no consumer could use as it is ------------------------------------------------------------------------------

[[gnu::cold]] Status refuse_misaligned(const Tensor& tensor) {
  return refused("the data is not aligned to " + std::to_string(alignment_of(tensor.dtype())) + " bytes as " +
                 std::string(tensor.dtype().name) + " needs. Use copy=True for an aligned copy");
}

// `foreign`: the object is not of a library that keeps its bools at 0 and 1.
inline bool surely_usable(const TensorObject* self, bool foreign) noexcept {
  return is_aligned(self->tensor) && (!foreign || self->tensor.dl.dtype.code != kDLBool);
}

[[gnu::cold]] Status check_usable(const TensorObject* self, bool foreign) {
  const Tensor& tensor = self->tensor;
  if (!is_aligned(tensor)) return refuse_misaligned(tensor);
  const bool doubtful = foreign && tensor.dl.dtype.code == kDLBool && is_host(tensor.dl.device) &&
                        self->protocol != Protocol::kDLPack;
  return doubtful ? check_bool_bytes(tensor) : Status();
}

// --- several protocols ------------------------------------------------------------------------------------------------

// Errors that say nothing about the array: they end the search.
bool is_final_error() {
  return PyErr_ExceptionMatches(PyExc_Exception) == 0 || PyErr_ExceptionMatches(PyExc_MemoryError) != 0 ||
         PyErr_ExceptionMatches(PyExc_RecursionError) != 0;
}

// The first refusal, which is raised in the end, with the later ones as its notes (PEP 678).
class Refusals {
 public:
  void add(const char* attribute) {
    if (!first_) {
      first_ = take_exception();
      return;
    }
    const std::string note = std::string("dlbridge also tried ") + attribute + ": " + take_error_text();
    const Ref done(PyObject_CallMethod(first_.get(), "add_note", "s", note.c_str()));
    PyErr_Clear();  // Python 3.10 has no notes
  }
  bool any() const noexcept { return static_cast<bool>(first_); }
  void raise_first() { set_exception(std::move(first_)); }

 private:
  Ref first_;
};

void raise_no_protocol(PyObject* object, const Options& options) {
  if (options.protocol != Protocol::kNone) {
    raise(kOperation, ErrorCode::kNoProtocol,
          type_name(object) + " does not speak protocol='" + kProtocolNames[static_cast<int>(options.protocol)] +
              "'. Leave protocol out to take what it speaks; dlbridge.inspect(obj) lists it");
    return;
  }
  raise(kOperation, ErrorCode::kNoProtocol,
        type_name(object) + " has none of __dlpack__, __cuda_array_interface__, __array_interface__, "
                            "__array_struct__ and no buffer. Convert it to an array first, for example with "
                            "numpy.asarray()");
}

// What libraries drop in silence when they export: caught on the ways around their own readers, too.
bool check_silent_losses(PyObject* object) {
  const Route route = route_of(Py_TYPE(object)).route;
  if (route == Route::kNumpy) return array_interface::check_mask(object);
  if (route == Route::kTorch || route == Route::kTorchSubclass) return dlpack::check_torch(object);
  return true;
}

TensorObject* read_generic(PyObject* object, const Options& options, bool only_dlpack) {
  if (!check_silent_losses(object)) return nullptr;
  Refusals refusals;
  for (const Reader& reader : kReaders) {
    if (options.protocol != Protocol::kNone && reader.protocol != options.protocol) continue;
    if (only_dlpack && options.protocol == Protocol::kNone && reader.protocol != Protocol::kDLPack) continue;
    PendingTensor pending(reader.protocol);
    TensorObject* const self = pending.get();
    if (self == nullptr) return nullptr;
    Read result = reader.read(object, options, self);
    if (result == Read::kDone && !options.must_copy && !surely_usable(self, true)) {
      if (const Status status = check_usable(self, true); !status.ok()) {
        raise(kOperation, status.issue());
        result = Read::kFailed;
      }
    }
    if (result == Read::kDone) return pending.commit();
    pending.abandon();
    if (result == Read::kAbsent) continue;
    if (is_final_error()) return nullptr;
    refusals.add(reader.attribute);
  }
  if (refusals.any())
    refusals.raise_first();
  else
    raise_no_protocol(object, options);
  return nullptr;
}

// --- one known type ---------------------------------------------------------------------------------------------------

// kAbsent: the direct route does not know this object; the ordinary readers do.
inline Read read_direct(PyObject* object, const TypeEntry& entry, TensorObject* self) {
  switch (entry.route) {
    case Route::kNumpy: self->protocol = Protocol::kArrayInterface; return array_interface::read_numpy(object, self);
    case Route::kTorch: self->protocol = Protocol::kDLPack; return dlpack::read_torch(object, entry.api, self);
    case Route::kCupy:
      self->protocol = Protocol::kCudaArrayInterface;
      return cuda_array_interface::read_cupy(object, self);
    case Route::kExchange: self->protocol = Protocol::kDLPack; return dlpack::read_exchange(object, entry.api, self);
    case Route::kCapsule: self->protocol = Protocol::kDLPack; return dlpack::read_capsule(object, self);
    case Route::kBuffer: self->protocol = Protocol::kBuffer; return buffer::read(object, self);
    default: return Read::kAbsent;
  }
}

[[gnu::always_inline]] inline TensorObject* read_known(PyObject* object, const TypeEntry& entry,
                                                       const Options& options) {
  const Route route = entry.route;  // not read again: reading may run Python code, which may replace the entry
  PendingTensor pending(Protocol::kNone);
  TensorObject* const self = pending.get();
  if (self == nullptr) return nullptr;
  Read result = read_direct(object, entry, self);
  const bool foreign = route == Route::kBuffer;
  if (result == Read::kDone && !surely_usable(self, foreign) && !options.must_copy) [[unlikely]] {
    if (const Status status = check_usable(self, foreign); !status.ok()) {
      raise(kOperation, status.issue());
      result = Read::kFailed;
    }
  }
  if (result == Read::kDone) [[likely]] return pending.commit();
  pending.abandon();
  return result == Read::kAbsent ? read_generic(object, options, false) : nullptr;
}

TensorObject* read_known(PyObject* object, const Options& options) {
  const TypeEntry& entry = route_of(Py_TYPE(object));
  if (entry.route == Route::kTensor) {
    Py_INCREF(object);
    return as_tensor(object);
  }
  if (entry.route == Route::kGeneric || entry.route == Route::kTorchSubclass)
    return read_generic(object, options, entry.route == Route::kTorchSubclass);
  return read_known(object, entry, options);
}

// --- arguments --------------------------------------------------------------------------------------------------------

bool parse_protocol(PyObject* argument, Protocol& out) {
  out = Protocol::kNone;
  if (argument == nullptr || argument == Py_None) return true;
  const char* text = PyUnicode_Check(argument) ? PyUnicode_AsUTF8(argument) : nullptr;
  if (text == nullptr) PyErr_Clear();
  for (int i = 1; text != nullptr && i < 5; ++i) {
    if (std::string_view(text) != kProtocolNames[i]) continue;
    out = static_cast<Protocol>(i);
    return true;
  }
  raise(kOperation, PyUnicode_Check(argument) ? ErrorCode::kMalformed : ErrorCode::kWrongType,
        "protocol is " + (text != nullptr ? "'" + std::string(text) + "'" : type_name(argument)) +
            "; give 'dlpack', 'array_interface', 'cuda_array_interface', 'buffer' or None");
  return false;
}

bool parse_options(PyObject* const* args, PyObject* kwnames, Options& out) {
  PyObject *protocol = nullptr, *stream = nullptr, *device = nullptr, *copy = nullptr;
  const struct {
    PyObject* name;
    PyObject** slot;
  } table[] = {{names.protocol, &protocol}, {names.stream, &stream}, {names.device, &device}, {names.copy, &copy}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    PyObject** slot = nullptr;
    for (const auto& entry : table)
      if (name == entry.name || PyUnicode_Compare(name, entry.name) == 0) slot = entry.slot;
    if (slot == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s got an unexpected keyword argument '%U'", kOperation, name);
      return false;
    }
    *slot = args[i];
  }
  if (!parse_protocol(protocol, out.protocol) || !parse_stream(stream, kOperation, out.stream) ||
      !parse_device_argument(device, kOperation, out.device))
    return false;
  if (copy == nullptr || copy == Py_None) return true;
  const int truth = PyObject_IsTrue(copy);
  if (truth < 0) return false;
  (truth != 0 ? out.must_copy : out.never_copy) = true;
  return true;
}

// Memory that both can read in place is no move: pinned to cpu, managed to its own GPU.
bool needs_move(DLDevice from, DLDevice to) noexcept {
  if (is_host(from) && is_host(to)) return false;
  if (is_cuda(from) && is_cuda(to)) return from.device_id != to.device_id;
  return !same_device(from, to);
}

PyObject* apply_options(Ref tensor, const Options& options) {
  TensorObject* self = as_tensor(tensor.get());
  const DLDevice from = self->tensor.dl.device;
  const DLDevice target = options.device.value_or(from);
  const bool moves = needs_move(from, target);
  if (moves && options.never_copy) {
    raise(kOperation, ErrorCode::kCopyRefused,
          "the array is on " + device_name(from) + " and device asks for " + device_name(target) +
              ", which needs a copy that copy=False forbids. Leave copy out");
    return nullptr;
  }
  if (moves || options.must_copy) {
    // 0 unless the user named a stream.
    TensorObject* copied = copy_tensor(self, moves ? target : from, kOperation, options.stream.handle);
    if (copied == nullptr) return nullptr;
    tensor = Ref(as_object(copied));
  }
  const Tensor& result = as_tensor(tensor.get())->tensor;
  // None asks for nothing: the tensor carries its ordering on to whoever takes it.
  if (options.stream.kind == StreamArgument::Kind::kHandle &&
      !order_for_consumer(result, options.stream, kOperation))
    return nullptr;
  return tensor.release();
}

PyObject* asdlpack_with_options(PyObject* object, PyObject* const* args, PyObject* kwnames) {
  Options options;
  if (!parse_options(args, kwnames, options)) return nullptr;
  TensorObject* self = options.protocol == Protocol::kNone ? read_known(object, options)
                                                           : read_generic(object, options, false);
  return self == nullptr ? nullptr : apply_options(Ref(as_object(self)), options);
}

// Compiled into asdlpack() once more: read_any() has other callers, and the call costs asdlpack() 2 ns.
[[gnu::always_inline]] inline PyObject* read_plain(PyObject* object) {
  static const Options kPlain;
  static constexpr TypeEntry kNumpyEntry{nullptr, 0, Route::kNumpy, nullptr};
  if (Py_TYPE(object) == array_interface::numpy_array_type) [[likely]]
    return as_object(read_known(object, kNumpyEntry, kPlain));
  return as_object(read_known(object, kPlain));
}

}  // namespace

PyObject* read_any(PyObject* object) { return read_plain(object); }

PyObject* asdlpack(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  try {
    if (nargs != 1) [[unlikely]] {
      PyErr_Format(PyExc_TypeError, "%s takes one positional argument, the array; got %zd", kOperation, nargs);
      return nullptr;
    }
    if (kwnames == nullptr || PyTuple_GET_SIZE(kwnames) == 0) [[likely]] return read_plain(args[0]);
    return asdlpack_with_options(args[0], args + 1, kwnames);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

TensorObject* copy_tensor(const TensorObject* source, DLDevice target, const char* operation, StreamHandle stream) {
  Tensor copy;
  const Status status = copy_without_gil(source->tensor, target, stream, copy);
  if (!status.ok()) {
    raise(operation, status.issue());
    return nullptr;
  }
  copy.flags &= ~kFlagReadOnly;
  if (copy.dl.dtype.code == kDLBool && is_host(copy.dl.device)) normalise_bool_bytes(copy);
  return wrap_tensor(std::move(copy), source->protocol, nullptr);
}

}  // namespace dlbridge::py
