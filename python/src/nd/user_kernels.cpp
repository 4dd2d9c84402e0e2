// Kernels as Python objects: KernelLauncher, the base of RawKernel with the launch itself, and what its cold side (in
// Python) needs: NVRTC, modules, attributes.
#include "python/src/nd/user_kernels.h"

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
#include "python/src/nd/array_object.h"
#include "python/src/nd/kernel_arguments.h"
#include "python/src/nd/kernel_launch.h"
#include "python/src/nd/launcher_object.h"

namespace dlbridge::py::nd {

namespace {

namespace pyb = ::pybind11;
namespace nvrtc = core::nvrtc;

// --- KernelLauncher ---------------------------------------------------------------------------------------------------

// The state of a kernel; the Python subclass adds the source and how to compile it.
struct KernelState {
  std::string name = "RawKernel";
  std::vector<KernelParameter> declared;
  bool has_declared = false;
  bool require_contiguous = true;
  bool cooperative = false;
  std::array<std::unique_ptr<core::Function>, cuda::kMaxDevices> functions;  // null: not loaded there yet
};

using KernelObject = LauncherObject<KernelState>;
PyTypeObject* kernel_type = nullptr;

KernelObject* as_kernel(PyObject* object) noexcept { return reinterpret_cast<KernelObject*>(object); }

struct LaunchCall {
  PyObject* grid = nullptr;
  PyObject* block = nullptr;
  PyObject* args = nullptr;
  PyObject* shared_mem = nullptr;
  PyObject* stream = nullptr;
};

bool parse_launch_call(const KernelState& kernel, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                       LaunchCall& out) {
  PyObject** const slots[] = {&out.grid, &out.block, &out.args, &out.shared_mem, &out.stream};
  constexpr const char* kNames[] = {"grid", "block", "args", "shared_mem", "stream"};
  if (nargs > 3) {
    PyErr_Format(PyExc_TypeError, "%s: takes 3 positional arguments (grid, block, args), got %zd; shared_mem and stream "
                                  "are given by name", kernel.name.c_str(), nargs);
    return false;
  }
  for (Py_ssize_t k = 0; k < nargs; ++k) *slots[k] = args[k];
  const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    std::size_t slot = 0;
    while (slot < 5 && PyUnicode_CompareWithASCIIString(name, kNames[slot]) != 0) ++slot;
    if (slot == 5 || *slots[slot] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s: %s argument '%U'; a launch takes (grid, block, args, *, shared_mem=0, "
                                    "stream=None)", kernel.name.c_str(), slot == 5 ? "unexpected" : "repeated", name);
      return false;
    }
    *slots[slot] = args[nargs + k];
  }
  if (out.grid != nullptr && out.block != nullptr && out.args != nullptr) return true;
  PyErr_Format(PyExc_TypeError, "%s: a launch takes (grid, block, args), as in kernel((blocks,), (threads,), (x, y, n))",
               kernel.name.c_str());
  return false;
}

bool parse_extent(PyObject* number, const char* operation, const char* what, unsigned& out) {
  const long long value = PyLong_CheckExact(number) ? PyLong_AsLongLong(number)
                                                    : PyLong_AsLongLong(Ref(PyNumber_Index(number)).get());
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  if (value < 0 || value > 0xffffffffLL) {
    raise(operation, ErrorCode::kMalformed,
          std::string(what) + " has the extent " + std::to_string(value) + "; extents are 0 to 4294967295");
    return false;
  }
  out = static_cast<unsigned>(value);
  return true;
}

// An int, or a sequence of one to three of them.
bool parse_dim3(PyObject* object, const char* operation, const char* what, core::Dim3& out) {
  if (!PyTuple_CheckExact(object)) [[unlikely]] {
    if (PyIndex_Check(object)) return parse_extent(object, operation, what, out.x);
    const Ref tuple(PySequence_Tuple(object));
    if (!tuple) return false;
    return parse_dim3(tuple.get(), operation, what, out);
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(object);
  if (n < 1 || n > 3) {
    raise(operation, ErrorCode::kMalformed,
          std::string(what) + " has " + std::to_string(n) + " extents; give one to three: (x,), (x, y) or (x, y, z)");
    return false;
  }
  unsigned* const extents[] = {&out.x, &out.y, &out.z};
  for (Py_ssize_t k = 0; k < n; ++k)
    if (!parse_extent(PyTuple_GET_ITEM(object, k), operation, what, *extents[k])) return false;
  return true;
}

// The kernel on a device, compiled and loaded by the subclass's _load(device) where it is not there yet.
const core::Function* function_on(KernelObject* self, int device) {
  const auto slot = static_cast<std::size_t>(device);
  if (const core::Function* loaded = self->state->functions[slot].get(); loaded != nullptr) [[likely]] return loaded;
  const Ref done(PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_load", "i", device));
  if (!done) return nullptr;
  if (self->state->functions[slot] == nullptr)
    PyErr_Format(PyExc_SystemError, "%s: _load() has not loaded the kernel", self->state->name.c_str());
  return self->state->functions[slot].get();
}

PyObject* launch_kernel(KernelObject* self, const LaunchCall& call) {
  const KernelState& kernel = *self->state;
  const char* name = kernel.name.c_str();
  core::Dim3 grid, block;
  unsigned shared = 0;
  if (!parse_dim3(call.grid, name, "grid", grid) || !parse_dim3(call.block, name, "block", block)) return nullptr;
  if (call.shared_mem != nullptr && !parse_extent(call.shared_mem, name, "shared_mem", shared)) return nullptr;
  const Ref arguments(PyTuple_CheckExact(call.args) ? Ref::borrow(call.args).release() : PySequence_Tuple(call.args));
  if (!arguments) return nullptr;

  KernelArguments packed({name, kernel.has_declared ? &kernel.declared : nullptr, kernel.require_contiguous});
  if (!packed.pack(reinterpret_cast<PyTupleObject*>(arguments.get())->ob_item, PyTuple_GET_SIZE(arguments.get())))
    return nullptr;
  int device = packed.device();
  if (device < 0 && !succeeded(name, cuda::current_device(device))) return nullptr;
  const core::Function* function = function_on(self, device);
  StreamHandle stream = 0;
  if (function == nullptr || !packed.fit(*function) || !resolve_launch_stream(call.stream, device, name, stream))
    return nullptr;
  const LaunchRequest request{*function, grid, block, shared, stream, kernel.cooperative};
  if (!succeeded(name, launch_ordered(request, packed.pointers(), packed.uses()))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* kernel_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) noexcept {
  try {
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    KernelObject* kernel = as_kernel(self);
    LaunchCall call;
    if (nargs == 3 && kwnames == nullptr) [[likely]] {
      call.grid = args[0];
      call.block = args[1];
      call.args = args[2];
    } else if (!parse_launch_call(*kernel->state, args, nargs, kwnames, call)) {
      return nullptr;
    }
    return launch_kernel(kernel, call);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

// --- the cold side ----------------------------------------------------------------------------------------------------

void throw_if_bad(const Status& status, const char* operation) {
  if (!succeeded(operation, status)) throw pyb::error_already_set();
}

KernelState& state_of(const pyb::handle& object) {
  if (!PyObject_TypeCheck(object.ptr(), kernel_type)) throw pyb::type_error("not a KernelLauncher");
  return *as_kernel(object.ptr())->state;
}

core::Function& loaded_function(const pyb::handle& object, int device) {
  KernelState& state = state_of(object);
  const auto& slot = state.functions.at(static_cast<std::size_t>(device));
  if (slot == nullptr) throw pyb::value_error(state.name + ": the kernel is not loaded on this device");
  return *slot;
}

// (kind, read_only, dtype id or -1, bit mask of dtypes, text); kind: 0 unknown, 1 pointer, 2 value.
using DeclaredTuple = std::tuple<int, bool, int, core::DTypeSet, std::string>;

void kernel_configure(const pyb::object& object, std::string name, const std::optional<std::vector<DeclaredTuple>>& declared,
                      bool require_contiguous, bool cooperative) {
  KernelState& state = state_of(object);
  state.name = std::move(name);
  state.require_contiguous = require_contiguous;
  state.cooperative = cooperative;
  state.has_declared = declared.has_value();
  state.declared.clear();
  if (!declared) return;
  for (const auto& [kind, read_only, dtype, allowed, text] : *declared)
    state.declared.push_back({static_cast<KernelParameter::Kind>(kind), read_only,
                              dtype >= 0 ? static_cast<DType>(dtype) : DType::kInt8, allowed, text});
}

std::uintptr_t load_module(int device, const pyb::bytes& image, const std::string& operation) {
  const std::string code = image;
  core::CUmodule module = nullptr;
  Status status;
  {
    const pyb::gil_scoped_release unlocked;
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
  state.functions.at(static_cast<std::size_t>(device)) = std::move(function);
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

void kernel_set_attribute(const pyb::object& object, int device, const std::string& name, int value) {
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
    const pyb::gil_scoped_release unlocked;
    status = nvrtc::compile(request, output);
  }
  throw_if_bad(status, request.name.c_str());
  return {output.succeeded, output.log, pyb::bytes(output.image), output.lowered_names};
}

}  // namespace

bool init_kernel_launcher(PyObject* module) {
  kernel_type = LauncherType<KernelState, kernel_vectorcall>::add_to(
      module, "dlbridge.nd._native.KernelLauncher",
      "A kernel that can be launched: kernel(grid, block, args, *, shared_mem=0, stream=None). The base of RawKernel.");
  return kernel_type != nullptr;
}

void init_user_kernels(pyb::module_ m) {
  if (!init_kernel_launcher(m.ptr()) || !init_elementwise_launcher(m.ptr()) || !init_kernel_keys(m.ptr()))
    throw pyb::error_already_set();
  m.def("kernel_configure", &kernel_configure, "Names a kernel and says what its launches check.");
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
