#include "python/src/nd/kernels/arguments.h"

#include <utility>

#include "frameworks/numpy.h"
#include "python/src/nd/runtime/runtime.h"

namespace dlbridge::py::nd {

namespace {

std::string dtype_text(DType t) { return std::string(info(t).name); }

std::string allowed_text(core::DTypeSet allowed) {
  std::string out;
  for (const DTypeInfo& d : kDTypes)
    if (static_cast<std::size_t>(d.id) < 32 && core::contains(allowed, d.id))
      out += (out.empty() ? "" : " or ") + std::string(d.name);
  return out;
}

}  // namespace

KernelArguments::KernelArguments(const KernelRules& rules) noexcept : rules_(rules) {}

KernelArguments::~KernelArguments() {
  for (Py_buffer& view : structures_) PyBuffer_Release(&view);
}

const KernelParameter* KernelArguments::declared(Py_ssize_t k) const noexcept {
  if (rules_.declared == nullptr) return nullptr;
  const KernelParameter& p = (*rules_.declared)[static_cast<std::size_t>(k)];
  return p.kind == KernelParameter::Kind::kUnknown ? nullptr : &p;
}

[[gnu::cold, gnu::noinline]] void KernelArguments::fail(Py_ssize_t k, ErrorCode code, const std::string& what) const {
  std::string where = "argument " + std::to_string(k);
  if (rules_.declared != nullptr) where += " (" + (*rules_.declared)[static_cast<std::size_t>(k)].text + ")";
  throw_issue(rules_.name, code, where + " " + what);
}

void KernelArguments::reserve(Py_ssize_t count) {
  count_ = count;
  if (count > kInline) [[unlikely]] {
    heap_pointers_.resize(static_cast<std::size_t>(count));
    heap_values_.resize(static_cast<std::size_t>(count));
    pointers_ = heap_pointers_.data();
    values_ = heap_values_.data();
  }
  for (Py_ssize_t k = 0; k < count; ++k) pointers_[k] = values_[k].bytes;
}

void KernelArguments::pack(PyObject* const* arguments, Py_ssize_t count) {
  if (rules_.declared != nullptr && static_cast<std::size_t>(count) != rules_.declared->size()) [[unlikely]]
    throw_issue(rules_.name, ErrorCode::kWrongType,
                "takes " + std::to_string(rules_.declared->size()) + " arguments, as its source declares; got " +
                    std::to_string(count));
  reserve(count);
  for (Py_ssize_t k = 0; k < count; ++k) pack_one(arguments[k], k);
}

void KernelArguments::pack_one(PyObject* argument, Py_ssize_t k) {
  if (is_tensor(argument)) [[likely]]
    return pack_tensor(as_tensor(argument)->tensor, nullptr, k);
  if (argument == Py_None) return pack_address(0, k);
  if (Py_TYPE(argument) == frameworks::numpy_array_type)
    fail(k, ErrorCode::kWrongType,
         "is a NumPy array, in the host's memory, which a kernel cannot reach. Copy it to the device first: "
         "nd.asarray(x)");
  core::Input scalar;
  const Parsed parsed = parse_operand(argument, scalar);
  checked(parsed != Parsed::kError);
  if (parsed == Parsed::kYes) return pack_scalar(scalar.scalar, k);
  pack_foreign(argument, k);
}

void KernelArguments::pack_tensor(const Tensor& tensor, PyObject* held, Py_ssize_t k) {
  uses_.add(tensor, held);  // first: it drops `held` whatever happens
  const DLDevice device = tensor.dl.device;
  if (!is_cuda(device)) [[unlikely]]
    fail(k, ErrorCode::kWrongType,
         "is an array on " + device_name(device) +
             ", which a kernel cannot reach. Copy it to the device first: "
             "nd.asarray(x, device='cuda')");
  if (device_ < 0) device_ = device.device_id;
  if (device.device_id != device_ && device.device_type != kDLCUDAManaged) [[unlikely]]
    fail(k, ErrorCode::kMalformed,
         "is an array on " + device_name(device) + ", and those before it are on cuda:" + std::to_string(device_) +
             ". A kernel runs on one device: move the array there with nd.asarray(x, "
             "device='cuda:" +
             std::to_string(device_) + "')");
  if (rules_.require_contiguous && !core::is_c_contiguous(tensor)) [[unlikely]]
    fail(k, ErrorCode::kMalformed,
         "is an array of shape " + core::shape_text(core::shape_of(tensor)) + " with strides " +
             core::shape_text({tensor.dl.strides, static_cast<std::size_t>(tensor.dl.ndim)}) +
             " (in elements), and a kernel gets its address alone. Pass nd.ascontiguousarray(x), or make the "
             "kernel with require_contiguous=False if it deals with the strides");
  if (const KernelParameter* p = declared(k); p != nullptr) {
    const DType dtype = tensor.dtype().id;
    if (p->kind != KernelParameter::Kind::kPointer) [[unlikely]]
      fail(k, ErrorCode::kWrongType,
           "is an array, and the kernel takes a value there. Pass x.item(), or "
           "declare a pointer");
    if (p->allowed != 0 && !core::contains(p->allowed, dtype)) [[unlikely]]
      fail(k, ErrorCode::kWrongType,
           "is an array of " + dtype_text(dtype) + "; the source declares " + allowed_text(p->allowed) +
               ". Convert it with astype(), or make the "
               "kernel with check_types=False");
    if (!p->read_only && tensor.readonly()) [[unlikely]]
      fail(k, ErrorCode::kRefused,
           "is a read-only array, and the kernel may write there. Declare the parameter "
           "as a pointer to const, or pass a copy");
  }
  values_[k].set(tensor.dl.data);
}

void KernelArguments::pack_address(std::uintptr_t address, Py_ssize_t k) {
  if (const KernelParameter* p = declared(k); p != nullptr && p->kind != KernelParameter::Kind::kPointer)
    fail(k, ErrorCode::kWrongType, "is an address, and the kernel takes a value there");
  values_[k].set(address);
}

void KernelArguments::pack_scalar(const core::Scalar& scalar, Py_ssize_t k) {
  const KernelParameter* p = declared(k);
  if (p == nullptr) return require(k, core::value_of(scalar, values_[k]));
  if (p->kind == KernelParameter::Kind::kScalar) [[likely]]
    return require(k, core::value_as(scalar, p->dtype, p->allowed, values_[k]));
  if (scalar.kind == core::ScalarKind::kInt && !scalar.strong && !scalar.huge)
    return pack_address(static_cast<std::uintptr_t>(scalar.i), k);
  fail(k, ErrorCode::kWrongType, "is a scalar, and the kernel takes a pointer there. Pass an array");
}

// ctypes structures and NumPy records: their bytes, by value.
bool KernelArguments::pack_structure(PyObject* argument, Py_ssize_t k) {
  const std::string_view module = Py_TYPE(argument)->tp_name;
  PyTypeObject* base = Py_TYPE(argument);
  while (base->tp_base != nullptr && base->tp_base != &PyBaseObject_Type) base = base->tp_base;
  const std::string_view root = base->tp_name;
  const bool structure = root.starts_with("_ctypes.") || module == "numpy.void" || root.ends_with("_CData");
  if (!structure || PyObject_CheckBuffer(argument) == 0) return false;
  Py_buffer view;
  structures_.reserve(structures_.size() + 1);
  checked(PyObject_GetBuffer(argument, &view, PyBUF_SIMPLE));
  structures_.push_back(view);
  pointers_[k] = view.buf;
  values_[k].size = static_cast<std::uint32_t>(view.len);
  values_[k].origin = core::KernelValue::Origin::kFixed;
  return true;
}

void KernelArguments::pack_foreign(PyObject* argument, Py_ssize_t k) {
  if (pack_structure(argument, k)) return;
  if (TensorObject* foreign = read_foreign(argument); foreign != nullptr)
    return pack_tensor(foreign->tensor, as_object(foreign), k);
  core::Storage* storage = nullptr;
  void* pointer = nullptr;
  if (!parse_memory_pointer(argument, storage, pointer))
    fail(k, ErrorCode::kWrongType,
         "is a " + type_name(argument) +
             "; a kernel takes arrays on a CUDA device, Python and NumPy scalars, "
             "MemoryPointer, None (a null pointer) and ctypes structures");
  uses_.add(storage);
  if (is_cuda(storage->device) && device_ < 0) device_ = storage->device.device_id;
  pack_address(reinterpret_cast<std::uintptr_t>(pointer), k);
}

void KernelArguments::fit(const core::Function& function) {
  if (!function.parameters_known) return;
  if (static_cast<std::size_t>(count_) != function.parameter_bytes.size()) [[unlikely]]
    throw_issue(
        rules_.name, ErrorCode::kWrongType,
        "takes " + std::to_string(function.parameter_bytes.size()) + " arguments; got " + std::to_string(count_));
  for (Py_ssize_t k = 0; k < count_; ++k) {
    const std::uint32_t bytes = function.parameter_bytes[static_cast<std::size_t>(k)];
    if (values_[k].size != bytes) require(k, core::narrow(values_[k], bytes));
  }
}

}  // namespace dlbridge::py::nd
