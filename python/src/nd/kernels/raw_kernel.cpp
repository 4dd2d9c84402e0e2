// Kernels as Python objects: KernelLauncher, the base of RawKernel with the launch itself, and what its cold side (in
// Python) needs: NVRTC, modules, attributes.
#include "python/src/nd/kernels/user_kernels.h"

#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dlbridge/cuda_driver.h"
#include "ndarray/runtime/module.h"
#include "ndarray/runtime/nvrtc.h"
#include "python/src/kit/pybind.h"
#include "python/src/nd/array.h"
#include "python/src/nd/kernels/arguments.h"
#include "python/src/nd/kernels/launch.h"
#include "python/src/nd/kernels/launcher_object.h"

namespace dlbridge::py::nd {

namespace {

namespace nvrtc = core::nvrtc;

// --- KernelLauncher --------------------------------------------------------------------------------------------------

// The state of a kernel; the Python subclass adds the source and how to compile it.
struct KernelState {
  std::string name = "RawKernel";
  std::vector<KernelParameter> declared;
  bool is_configured = false;
  bool has_declared = false;
  bool require_contiguous = true;
  bool cooperative = false;
  std::array<Atomic<core::Function*>, cuda::kMaxDevices> functions;  // owned; null: not loaded there yet

  KernelState() = default;
  KernelState(const KernelState&) = delete;
  KernelState& operator=(const KernelState&) = delete;
  ~KernelState() {
    for (core::Function* function : functions) delete function;
  }
};

using KernelObject = LauncherObject<KernelState>;
PyTypeObject* kernel_type = nullptr;

KernelObject* as_kernel(PyObject* object) noexcept { return reinterpret_cast<KernelObject*>(object); }

constexpr char kLaunch[] = "kernel(grid=None, block=None, args=None, *, shared_mem=0, stream=None)";

unsigned parse_extent(PyObject* number, const char* operation, const char* what) {
  const Ref integer = owned(PyNumber_Index(number));
  const long long value = checked_number(PyLong_AsLongLong(integer.get()));
  if (value < 0 || value > 0xffffffffLL)
    throw_issue(operation, ErrorCode::kMalformed,
                std::string(what) + " has the extent " + std::to_string(value) + "; extents are 0 to 4294967295");
  return static_cast<unsigned>(value);
}

// An int, or a sequence of one to three of them.
core::Dim3 parse_dim3(PyObject* object, const char* operation, const char* what) {
  core::Dim3 out;
  if (!PyTuple_CheckExact(object)) [[unlikely]] {
    if (!PyIndex_Check(object)) return parse_dim3(owned(PySequence_Tuple(object)).get(), operation, what);
    out.x = parse_extent(object, operation, what);
    return out;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(object);
  if (n < 1 || n > 3)
    throw_issue(
        operation, ErrorCode::kMalformed,
        std::string(what) + " has " + std::to_string(n) + " extents; give one to three: (x,), (x, y) or (x, y, z)");
  unsigned* const extents[] = {&out.x, &out.y, &out.z};
  for (Py_ssize_t k = 0; k < n; ++k) *extents[k] = parse_extent(PyTuple_GET_ITEM(object, k), operation, what);
  return out;
}

// The kernel on a device, compiled and loaded by the subclass's _load(device) where it is not there yet.
const core::Function& function_on(KernelObject* self, int device) {
  const auto& slot = self->state->functions[static_cast<std::size_t>(device)];
  if (const core::Function* loaded = slot; loaded != nullptr) [[likely]]
    return *loaded;
  owned(PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_load", "i", device));
  const core::Function* loaded = slot;
  if (loaded == nullptr)
    throw_error(PyExc_SystemError, "%s: _load() has not loaded the kernel", self->state->name.c_str());
  return *loaded;
}

PyObject* kernel_vectorcall(PyObject* object, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  static constexpr Signature kSignature(kLaunch);
  KernelObject* self = as_kernel(object);
  const KernelState& kernel = *self->state;
  const char* name = kernel.name.c_str();
  const Call call(kSignature, name, args, PyVectorcall_NARGS(nargsf), kwnames);
  if (call.given(0) == nullptr || call.given(1) == nullptr || call.given(2) == nullptr)
    throw_error(PyExc_TypeError,
                "%s: a launch takes (grid, block, args), as in kernel((blocks,), (threads,), (x, y, n))", name);
  const core::Dim3 grid = parse_dim3(call.given(0), name, "grid");
  const core::Dim3 block = parse_dim3(call.given(1), name, "block");
  const unsigned shared = call.given(3) != nullptr ? parse_extent(call.given(3), name, "shared_mem") : 0;
  const Ref arguments =
      PyTuple_CheckExact(call.given(2)) ? Ref::borrow(call.given(2)) : owned(PySequence_Tuple(call.given(2)));

  KernelArguments packed({name, kernel.has_declared ? &kernel.declared : nullptr, kernel.require_contiguous});
  packed.pack(reinterpret_cast<PyTupleObject*>(arguments.get())->ob_item, PyTuple_GET_SIZE(arguments.get()));
  int device = packed.device();
  if (device < 0) throw_if_bad(cuda::current_device(device), name);
  const core::Function& function = function_on(self, device);
  packed.fit(function);
  const StreamHandle stream = resolve_launch_stream(call[4], device, name);
  const LaunchRequest request{function, grid, block, shared, stream, kernel.cooperative};
  throw_if_bad(launch_ordered(request, packed.pointers(), packed.uses()), name);
  Py_RETURN_NONE;
}

// --- the cold side ---------------------------------------------------------------------------------------------------

KernelState& state_of(const pyb::handle& object) {
  if (!PyObject_TypeCheck(object.ptr(), kernel_type)) throw pyb::type_error("not a KernelLauncher");
  return *as_kernel(object.ptr())->state;
}

core::Function& loaded_function(const pyb::handle& object, int device) {
  KernelState& state = state_of(object);
  core::Function* loaded = state.functions.at(static_cast<std::size_t>(device));
  if (loaded == nullptr) throw pyb::value_error(state.name + ": the kernel is not loaded on this device");
  return *loaded;
}

// `declared`: of signature.py, or null.
void kernel_configure(const pyb::object& object, std::string name, const std::optional<pyb::list>& declared,
                      bool require_contiguous, bool cooperative) {
  KernelState& state = state_of(object);
  // A launch runs Python code (__index__, a stream's attributes) between its looks at these.
  if (std::exchange(state.is_configured, true)) throw pyb::type_error(state.name + ": __init__() may run once");
  state.name = std::move(name);
  state.require_contiguous = require_contiguous;
  state.cooperative = cooperative;
  state.has_declared = declared.has_value();
  state.declared.clear();
  if (!declared) return;
  for (const pyb::handle parameter : *declared) {
    const auto dtype = parameter.attr("dtype").cast<int>();
    state.declared.push_back(
        {static_cast<KernelParameter::Kind>(parameter.attr("kind").cast<int>()),
         parameter.attr("read_only").cast<bool>(), dtype >= 0 ? static_cast<DType>(dtype) : DType::kInt8,
         parameter.attr("allowed").cast<core::DTypeSet>(), parameter.attr("text").cast<std::string>()});
  }
}

std::uintptr_t load_module(int device, const pyb::bytes& image, const std::string& operation) {
  const std::string code = image;
  core::CUmodule module = nullptr;
  Status status;
  {
    const GilRelease unlocked;
    status = core::load_module(device, code, module);
  }
  throw_if_bad(status, operation.c_str());
  return reinterpret_cast<std::uintptr_t>(module);
}

void kernel_install(const pyb::object& object, int device, std::uintptr_t module, const std::string& symbol) {
  KernelState& state = state_of(object);
  auto function = std::make_unique<core::Function>();
  throw_if_bad(core::get_function(reinterpret_cast<core::CUmodule>(module), device, symbol.c_str(), *function),
               state.name.c_str());
  core::Function* nobodys = nullptr;
  if (state.functions.at(static_cast<std::size_t>(device)).replace(nobodys, function.get()))
    function.release();  // else another thread was faster, and may be at a launch of it
}

std::pair<std::uintptr_t, std::size_t> module_global(std::uintptr_t module, int device, const std::string& name,
                                                     const std::string& operation) {
  cuda::CUdeviceptr address = 0;
  std::size_t bytes = 0;
  throw_if_bad(core::get_global(reinterpret_cast<core::CUmodule>(module), device, name.c_str(), address, bytes),
               operation.c_str());
  return {address, bytes};
}

pyb::dict kernel_attributes(const pyb::object& object, int device) {
  const core::Function& function = loaded_function(object, device);
  pyb::dict out;
  for (const core::FunctionAttribute& attribute : core::kFunctionAttributes) {
    int value = 0;
    throw_if_bad(core::get_attribute(function, attribute.code, value), state_of(object).name.c_str());
    out[attribute.name] = value;
  }
  return out;
}

void kernel_set_attribute(const pyb::object& object, int device, const std::string& name, Int<int> value) {
  for (const core::FunctionAttribute& attribute : core::kFunctionAttributes)
    if (name == attribute.name)
      return throw_if_bad(core::set_attribute(loaded_function(object, device), attribute.code, value),
                          state_of(object).name.c_str());
  throw pyb::value_error(state_of(object).name + ": there is no attribute '" + name + "'");
}

pyb::dict limits_of(int device) {
  const core::LaunchLimits* limits = nullptr;
  throw_if_bad(core::launch_limits(device, limits), "launch_limits()");
  pyb::dict out;
  out["compute_capability"] = limits->compute_capability;
  out["multiprocessors"] = limits->multiprocessors;
  out["max_threads"] = limits->max_threads;
  out["max_block"] = pyb::make_tuple(limits->max_block[0], limits->max_block[1], limits->max_block[2]);
  out["max_grid"] = pyb::make_tuple(limits->max_grid[0], limits->max_grid[1], limits->max_grid[2]);
  out["shared"] = limits->shared;
  out["shared_optin"] = limits->shared_optin;
  return out;
}

int launch_device() {
  int device = 0;
  throw_if_bad(cuda::current_device(device), "current_device()");
  return device;
}

pyb::dict nvrtc_open(const std::vector<std::string>& candidates) {
  const nvrtc::Info* found = nullptr;
  throw_if_bad(nvrtc::open(candidates, cuda::driver_version() / 1000, found), "NVRTC");
  pyb::dict out;
  out["path"] = found->path;
  out["version"] = pyb::make_tuple(found->version.major, found->version.minor);
  out["architectures"] = found->architectures;
  return out;
}

// (succeeded, log, image, lowered names)
std::tuple<bool, std::string, pyb::bytes, std::vector<std::string>> nvrtc_compile(
    std::string source, std::string name, std::vector<std::string> options, std::vector<std::string> name_expressions,
    std::vector<std::pair<std::string, std::string>> headers, bool machine_code) {
  const nvrtc::Request request{std::move(source),           std::move(name),    std::move(options),
                               std::move(name_expressions), std::move(headers), machine_code};
  nvrtc::Output output;
  Status status;
  {
    const GilRelease unlocked;
    status = nvrtc::compile(request, output);
  }
  throw_if_bad(status, request.name.c_str());
  return {output.succeeded, output.log, pyb::bytes(output.image), output.lowered_names};
}

}  // namespace

void init_kernel_launcher(PyObject* module) {
  kernel_type = LauncherType<KernelState, Guard<kernel_vectorcall>::call>::add_to(
      module, "dlbridge.nd._native.KernelLauncher",
      "A kernel that can be launched: kernel(grid, block, args, *, shared_mem=0, stream=None). The base of RawKernel.");
}

void init_user_kernels(pyb::module_ m) {
  init_kernel_launcher(m.ptr());
  init_elementwise_launcher(m.ptr());
  init_kernel_keys(m.ptr());
  m.def("kernel_configure", &kernel_configure, "Names a kernel and says what its launches check.", pyb::arg("self"),
        pyb::kw_only(), pyb::arg("name"), pyb::arg("declared") = pyb::none(), pyb::arg("require_contiguous") = false,
        pyb::arg("cooperative") = false);
  m.def("kernel_install", &kernel_install, "Gives a kernel its function of a loaded module.");
  m.def("kernel_attributes", &kernel_attributes, "The driver's attributes of a loaded kernel.");
  m.def("kernel_set_attribute", &kernel_set_attribute, "Sets an attribute of a loaded kernel.");
  m.def("load_module", &load_module, "Loads machine code or PTX on a device; the module's handle.");
  m.def("module_global", &module_global, "Address and bytes of a module's global variable.");
  m.def("launch_limits", &limits_of, "What a device allows a launch.");
  m.def("launch_device", &launch_device, "The device that the calling thread has selected.");
  m.def("nvrtc_open", &nvrtc_open, "Opens NVRTC, the first usable of the candidates.");
  m.def("nvrtc_compile", &nvrtc_compile, "Compiles CUDA C++.");
}

}  // namespace dlbridge::py::nd
