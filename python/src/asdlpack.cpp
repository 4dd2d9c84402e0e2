// asdlpack(): chooses the reader, falls back where it refuses, and does what stream=, device= and copy= ask for.
#include <optional>
#include <string>
#include <string_view>

#include "dlbridge/cuda_order.h"
#include "frameworks/numpy.h"
#include "frameworks/table.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/arrow/arrow.h"
#include "protocols/buffer/buffer.h"
#include "protocols/common/bool_bytes.h"
#include "protocols/common/boundary.h"
#include "protocols/common/byte_order.h"
#include "protocols/common/copying.h"
#include "protocols/common/errors.h"
#include "protocols/common/streams.h"
#include "protocols/cuda_array_interface/cuda_array_interface.h"
#include "protocols/dlpack/dlpack.h"
#include "python/src/bridge.h"
#include "python/src/convert.h"

namespace dlbridge::py {

namespace {

using frameworks::ArrayKind;
using Options = ReadOptions;

constexpr char kPlainOperation[] = "asdlpack()";

// --- readers, in the order in which they are preferred ---------------------------------------------------------------

Read read_dlpack(PyObject* object, const Options& options, ReadCall& call, TensorObject* self) {
  if (PyCapsule_CheckExact(object)) return dlpack::read_capsule(object, call, self);
  const Ref method = optional_attribute(object, names.dlpack);
  if (!method) return PyErr_Occurred() != nullptr ? Read::kFailed : Read::kAbsent;
  return dlpack::read_object(object, options.device, call, self);
}
template <Read (*kRead)(PyObject*, ReadCall&, TensorObject*)>
Read read_by(PyObject* object, const Options&, ReadCall& call, TensorObject* self) {
  return kRead(object, call, self);
}

Read read_arrow(PyObject* object, const Options& options, ReadCall& call, TensorObject* self) {
  using arrow_c::Copies;
  const Copies copies = options.never_copy              ? Copies::kNever
                        : options.will_copy_from_host() ? Copies::kAllowed
                                                        : Copies::kDeclared;
  return arrow_c::read(object, arrow_c::options_of(options.nulls, copies), call, self, options.mask);
}

struct Reader {
  Protocol protocol;
  const char* attribute;
  Read (*read)(PyObject*, const Options&, ReadCall&, TensorObject*);
};
constexpr Reader kReaders[] = {
    {Protocol::kDLPack, "__dlpack__", read_dlpack},
    {Protocol::kCudaArrayInterface, "__cuda_array_interface__", read_by<cuda_array_interface::read>},
    {Protocol::kArrayInterface, "__array_struct__", read_by<array_interface::read_struct>},
    {Protocol::kArrayInterface, "__array_interface__", read_by<array_interface::read_dict>},
    {Protocol::kBuffer, "buffer", read_by<buffer::read>},
    {Protocol::kArrow, "Arrow", read_arrow},
};

// --- what no consumer could use as it is -----------------------------------------------------------------------------

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
  const bool doubtful =
      foreign && tensor.dl.dtype.code == kDLBool && is_host(tensor.dl.device) && self->protocol != Protocol::kDLPack;
  return doubtful ? check_bool_bytes(tensor) : Status();
}

// --- several protocols -----------------------------------------------------------------------------------------------

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
    raise(options.operation, ErrorCode::kNoProtocol,
          type_name(object) + " does not speak protocol='" + kProtocolNames[static_cast<int>(options.protocol)] +
              "'. Leave protocol out to take what it speaks; dlbridge.inspect(obj) lists it");
    return;
  }
  raise(options.operation, ErrorCode::kNoProtocol,
        type_name(object) + " has none of __dlpack__, __cuda_array_interface__, __array_interface__, "
                            "__array_struct__, __arrow_c_array__, __arrow_c_stream__ and no buffer. Convert it to an "
                            "array first, for example with numpy.asarray()");
}

// By the protocols in turn, with what the table knows of the array's kind and the protocols do not say.
TensorObject* read_generic(PyObject* object, const ArrayKind& kind, const Options& options) {
  if (ReadCall call; kind.check != nullptr && !kind.check(object, call)) {
    raise_refusal(options.operation, call.refusal);
    return nullptr;
  }
  Refusals refusals;
  for (const Reader& reader : kReaders) {
    if (options.protocol != Protocol::kNone && reader.protocol != options.protocol) continue;
    if (kind.only_dlpack && options.protocol == Protocol::kNone && reader.protocol != Protocol::kDLPack) continue;
    PendingTensor pending(reader.protocol);
    TensorObject* const self = pending.get();
    if (self == nullptr) return nullptr;
    if (options.swapped != nullptr) *options.swapped = false;  // an earlier reader may have said so before it refused
    ReadCall call;
    call.swapped = options.swapped;
    Read result = reader.read(object, options, call, self);
    if (result == Read::kDone && kind.order != nullptr && !kind.order(object, call, self)) result = Read::kFailed;
    if (result == Read::kDone && !options.must_copy && !surely_usable(self, true))
      if (Status status = check_usable(self, true); !status.ok()) result = call.refuse(std::move(status));
    if (result == Read::kDone) {
      if (kind.immutable) self->tensor.flags |= kFlagReadOnly;
      return pending.commit();
    }
    pending.abandon();
    if (result == Read::kAbsent) continue;
    raise_refusal(options.operation, call.refusal);
    if (is_final_error()) return nullptr;
    refusals.add(reader.attribute);
  }
  if (refusals.any()) refusals.raise_first();
  else raise_no_protocol(object, options);
  return nullptr;
}

// --- one known kind --------------------------------------------------------------------------------------------------

// The options of a call that gives none: its name, until a slow way needs them all.
struct NoOptions {
  const char* operation;
  static constexpr bool* swapped = nullptr;

  operator Options() const {
    Options all;
    all.operation = operation;
    return all;
  }
};

// What read_short() cannot give as it is. `result`: what the array's own reader said of `self`, which is taken over.
[[gnu::noinline]] TensorObject* read_unusual(PyObject* object, const ArrayKind& kind, const Options& options,
                                             Read result, ReadCall& call, TensorObject* self) {
  PendingTensor pending(self);
  if (result == Read::kDone && !options.must_copy)
    if (Status status = check_usable(pending.get(), kind.foreign_bools); !status.ok())
      result = call.refuse(std::move(status));
  if (result == Read::kDone) {
    if (kind.immutable) pending.get()->tensor.flags |= kFlagReadOnly;
    return pending.commit();
  }
  pending.abandon();
  if (result == Read::kAbsent) return read_generic(object, kind, options);
  raise_refusal(options.operation, call.refusal);
  return nullptr;
}

template <class AnyOptions, class ReadArray>
[[gnu::always_inline]] inline TensorObject* read_short(PyObject* object, const ArrayKind& kind,
                                                       const AnyOptions& options, ReadArray read) {
  PendingTensor pending(Protocol::kNone);
  TensorObject* const self = pending.get();
  if (self == nullptr) return nullptr;
  ReadCall call;
  call.swapped = options.swapped;
  const Read result = read(call, self);
  if (result != Read::kDone || !surely_usable(self, kind.foreign_bools)) [[unlikely]]
    return read_unusual(object, kind, options, result, call, pending.release());
  if (kind.immutable) self->tensor.flags |= kFlagReadOnly;
  return pending.commit();
}

template <class AnyOptions>
[[gnu::always_inline]] inline TensorObject* read_known(PyObject* object, const AnyOptions& options) {
  const frameworks::TypeFacts type = frameworks::facts_of(Py_TYPE(object));
  if (type.kind == &frameworks::kOwnTensor) {
    Py_INCREF(object);
    return as_tensor(object);
  }
  if (type.kind->read == nullptr) return read_generic(object, *type.kind, options);
  return read_short(object, *type.kind, options,
                    [&](ReadCall& call, TensorObject* self) { return type.kind->read(object, type.api, call, self); });
}

// --- arguments -------------------------------------------------------------------------------------------------------

bool parse_protocol(PyObject* argument, const char* operation, Protocol& out) {
  out = Protocol::kNone;
  if (argument == nullptr || argument == Py_None) return true;
  const char* text = PyUnicode_Check(argument) ? PyUnicode_AsUTF8(argument) : nullptr;
  if (text == nullptr) PyErr_Clear();
  for (int i = 1; text != nullptr && i < static_cast<int>(std::size(kProtocolNames)); ++i) {
    if (std::string_view(text) != kProtocolNames[i]) continue;
    out = static_cast<Protocol>(i);
    return true;
  }
  raise(operation, PyUnicode_Check(argument) ? ErrorCode::kMalformed : ErrorCode::kWrongType,
        "protocol is " + (text != nullptr ? "'" + std::string(text) + "'" : type_name(argument)) +
            "; give 'dlpack', 'array_interface', 'cuda_array_interface', 'buffer', 'arrow' or None");
  return false;
}

// Nulls are Arrow's: an object is read by it where something is to become of them.
bool choose_arrow(Options& options) {
  if (options.protocol == Protocol::kNone || options.protocol == Protocol::kArrow) {
    options.protocol = Protocol::kArrow;
    return true;
  }
  raise(options.operation, ErrorCode::kMalformed,
        std::string("nulls is given, and protocol='") + kProtocolNames[static_cast<int>(options.protocol)] +
            "' knows no nulls. Leave one of the two out");
  return false;
}

bool parse_options(PyObject* const* args, PyObject* kwnames, Options& out) {
  PyObject *protocol = nullptr, *stream = nullptr, *device = nullptr, *copy = nullptr, *nulls = nullptr;
  const struct {
    PyObject* name;
    PyObject** slot;
  } table[] = {{names.protocol, &protocol},
               {names.stream, &stream},
               {names.device, &device},
               {names.copy, &copy},
               {names.nulls, &nulls}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    PyObject** slot = nullptr;
    for (const auto& entry : table)
      if (name == entry.name || PyUnicode_Compare(name, entry.name) == 0) slot = entry.slot;
    if (slot == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s got an unexpected keyword argument '%U'", out.operation, name);
      return false;
    }
    *slot = args[i];
  }
  if (!parse_protocol(protocol, out.operation, out.protocol) || !parse_read_options(stream, device, copy, out) ||
      !arrow_c::parse_nulls(nulls, out.operation, out.nulls))
    return false;
  return out.nulls == arrow_c::Nulls::kRefuse || choose_arrow(out);
}

// A host can read all host memory, and a GPU what is managed, in place: neither is a move. The reverse is one: plain
// memory is not pinned or managed.
bool needs_move(DLDevice from, DLDevice to) noexcept {
  if (same_device(from, to)) return false;
  if (same_device(to, {kDLCPU, 0})) return !is_host(from);
  if (to.device_type == kDLCUDA) return !is_cuda(from) || from.device_id != to.device_id;
  return true;
}

// Numbers are turned around in a host copy, which then goes where it is wanted.
TensorObject* copy_swapped(const TensorObject* source, DLDevice target, const char* operation, StreamHandle stream) {
  Ref host(as_object(copy_tensor(source, {kDLCPU, 0}, operation, stream)));
  if (!host) return nullptr;
  swap_bytes(as_tensor(host.get())->tensor);
  if (is_host(target)) return as_tensor(host.release());
  return copy_tensor(as_tensor(host.get()), target, operation, stream);
}

}  // namespace

PyObject* apply_options(Ref tensor, const ReadOptions& options, bool swapped) {
  TensorObject* self = as_tensor(tensor.get());
  const DLDevice from = self->tensor.dl.device;
  const DLDevice target = options.device.value_or(from);
  const bool moves = needs_move(from, target);
  if (moves && options.never_copy) {
    raise(options.operation, ErrorCode::kCopyRefused,
          "the array is on " + device_name(from) + " and device asks for " + device_name(target) +
              ", which needs a copy that copy=False forbids. Leave copy out");
    return nullptr;
  }
  if (moves) {
    if (const Status status = check_copy_target(target); !status.ok()) {
      raise(options.operation, status.issue());
      return nullptr;
    }
  }
  const bool is_own_copy = self->protocol == Protocol::kArrow && (self->tensor.flags & kFlagCopied) != 0;
  if (moves || (options.must_copy && !is_own_copy)) {
    // 0 unless the user named a stream.
    const StreamHandle stream = options.stream.handle;
    TensorObject* copied = swapped ? copy_swapped(self, moves ? target : from, options.operation, stream)
                                   : copy_tensor(self, moves ? target : from, options.operation, stream);
    if (copied == nullptr) return nullptr;
    tensor = Ref(as_object(copied));
  }
  const Tensor& result = as_tensor(tensor.get())->tensor;
  // None asks for nothing: the tensor carries its ordering on to whoever takes it.
  if (options.stream.kind == StreamArgument::Kind::kHandle &&
      !order_for_consumer(result, options.stream, options.operation))
    return nullptr;
  return settled(as_tensor(tensor.release()), options.operation);
}

bool parse_read_options(PyObject* stream, PyObject* device, PyObject* copy, ReadOptions& out) {
  if (!parse_stream(stream, out.operation, out.stream) || !parse_device_argument(device, out.operation, out.device))
    return false;
  if (copy == nullptr || copy == Py_None) return true;
  const int truth = PyObject_IsTrue(copy);
  if (truth < 0) return false;
  (truth != 0 ? out.must_copy : out.never_copy) = true;
  return true;
}

PyObject* read_unapplied(PyObject* object, ReadOptions options, bool& swapped) {
  if (options.will_copy_from_host()) options.swapped = &swapped;
  return as_object(options.protocol == Protocol::kNone
                       ? read_known(object, options)
                       : read_generic(object, *frameworks::facts_of(Py_TYPE(object)).kind, options));
}

namespace {

// The values, and beside them the mask on the same device.
PyObject* read_masked(PyObject* object, ReadOptions options) {
  Tensor mask;
  options.mask = &mask;
  bool swapped = false;
  Ref values(read_unapplied(object, options, swapped));
  values = Ref(values ? apply_options(std::move(values), options, swapped) : nullptr);
  Ref beside(values ? as_object(wrap_tensor(std::move(mask), Protocol::kArrow, nullptr)) : nullptr);
  options.must_copy = options.never_copy = false;
  beside = Ref(beside ? apply_options(std::move(beside), options, false) : nullptr);
  return beside ? PyTuple_Pack(2, values.get(), beside.get()) : nullptr;
}

[[gnu::always_inline]] inline TensorObject* read_ndarray(PyObject* object, const NoOptions& options) {
  return read_short(object, frameworks::kNumpyArray, options, [=](ReadCall& call, TensorObject* self) {
    return frameworks::read_numpy(object, nullptr, call, self);
  });
}

// asdlpack(object), in three: each saves the registers that it uses itself, and asdlpack() none.
[[gnu::noinline]] PyObject* asdlpack_ndarray(PyObject* object) noexcept {
  return guarded([=] { return as_object(read_ndarray(object, NoOptions{kPlainOperation})); });  // host memory: settled
}

[[gnu::noinline]] PyObject* asdlpack_plain(PyObject* object) noexcept {
  return guarded([=] { return settled(read_known(object, NoOptions{kPlainOperation}), kPlainOperation); });
}

[[gnu::noinline]] PyObject* asdlpack_with_options(PyObject* object, PyObject* const* args, PyObject* kwnames) noexcept {
  return guarded([=]() -> PyObject* {
    Options options;
    bool swapped = false;
    if (!parse_options(args, kwnames, options)) return nullptr;
    if (options.nulls == arrow_c::Nulls::kMask) return read_masked(object, options);
    Ref tensor(read_unapplied(object, options, swapped));
    // The options come before the tensor is settled: a producer that is copied from is told on its own stream.
    return tensor ? apply_options(std::move(tensor), options, swapped) : nullptr;
  });
}

}  // namespace

PyObject* read_any(PyObject* object, const char* operation) {
  const NoOptions options{operation};
  if (Py_TYPE(object) == frameworks::numpy_array_type) [[likely]]
    return as_object(read_ndarray(object, options));
  return as_object(read_known(object, options));
}

PyObject* asdlpack(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  if (nargs != 1) [[unlikely]] {
    PyErr_Format(PyExc_TypeError, "%s takes one positional argument, the array; got %zd", kPlainOperation, nargs);
    return nullptr;
  }
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) return asdlpack_with_options(args[0], args + 1, kwnames);
  if (Py_TYPE(args[0]) == frameworks::numpy_array_type) [[likely]]
    return asdlpack_ndarray(args[0]);
  return asdlpack_plain(args[0]);
}

}  // namespace dlbridge::py
