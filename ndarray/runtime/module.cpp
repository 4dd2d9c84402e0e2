#include "ndarray/runtime/module.h"

#include <dlfcn.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "dlbridge/cuda_device.h"
#include "dlbridge/device_memory.h"

namespace dlbridge::nd {

namespace {

using cuda::check;
using cuda::kSuccess;

constexpr CUresult kOutOfResources = 701;
constexpr CUresult kCooperativeTooLarge = 720;
constexpr CUresult kNotFound = 500;
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferSizeBytes = 6;

// One for the process, never freed: see module.h. The key holds the image itself: no hash can be mistaken.
struct Loaded {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, CUmodule> modules;
};
Loaded& loaded() {
  static auto* instance = new Loaded;
  return *instance;
}

[[gnu::cold]] Status load_failure(CUresult result, const char* log) {
  const Status plain = check(result, "cuModuleLoadData");
  std::string message = plain.message();
  if (log[0] != '\0') message.append(". The driver's compiler says: ").append(log);
  if (result == 209)  // CUDA_ERROR_NO_BINARY_FOR_GPU
    message += ". The code was compiled for another GPU architecture than this device has: give PTX, or code for it";
  if (result == 218 || result == 222)  // INVALID_PTX, UNSUPPORTED_PTX_VERSION
    message +=
        ". PTX of a newer CUDA than the driver's cannot be compiled: update the driver, or use an older compiler";
  return {plain.code(), std::move(message)};
}

using GetParameterInfo = CUresult (*)(CUfunction, std::size_t, std::size_t*, std::size_t*);
GetParameterInfo find_parameter_info() noexcept {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // the bridge has it open for good
  if (library == nullptr) return nullptr;
  return reinterpret_cast<GetParameterInfo>(::dlsym(library, "cuFuncGetParamInfo"));
}

void read_parameters(Function& function) {
  static const GetParameterInfo ask = find_parameter_info();
  if (ask == nullptr) return;
  std::size_t offset = 0, bytes = 0;
  for (std::size_t k = 0;; ++k) {
    const CUresult result = ask(function.handle, k, &offset, &bytes);
    if (result == kSuccess) {
      function.parameter_bytes.push_back(static_cast<std::uint32_t>(bytes));
      continue;
    }
    function.parameters_known = result == cuda::kInvalidValue;  // past the last one
    break;
  }
  if (!function.parameters_known) function.parameter_bytes.clear();
}

struct LimitsSlot {
  LaunchLimits limits;
  std::atomic<bool> ready{false};
};

Status read_limits(int device, LaunchLimits& out) {
  const std::pair<int, int*> wanted[] = {
      {1, &out.max_threads},   {2, &out.max_block[0]},     {3, &out.max_block[1]}, {4, &out.max_block[2]},
      {5, &out.max_grid[0]},   {6, &out.max_grid[1]},      {7, &out.max_grid[2]},  {8, &out.shared},
      {97, &out.shared_optin}, {16, &out.multiprocessors},
  };
  for (const auto& [attribute, value] : wanted)
    DLBRIDGE_TRY(check(cuda::functions().device_get_attribute(value, attribute, device), "cuDeviceGetAttribute"));
  int major = 0, minor = 0;
  DLBRIDGE_TRY(
      check(cuda::functions().device_get_attribute(&major, kAttributeComputeMajor, device), "cuDeviceGetAttribute"));
  DLBRIDGE_TRY(
      check(cuda::functions().device_get_attribute(&minor, kAttributeComputeMinor, device), "cuDeviceGetAttribute"));
  out.compute_capability = 10 * major + minor;
  return {};
}

constexpr const char* kAxes = "xyz";

[[gnu::cold]] Status too_large(const char* what, int axis, unsigned got, int most, const char* remedy) {
  return malformed(std::string(what) + " dimension " + kAxes[axis] + " is " + std::to_string(got) +
                   ", and the device allows " + std::to_string(most) + " at most" + remedy);
}

[[gnu::cold]] Status explain_launch(CUresult result, const Function& f, const Dim3& block, unsigned shared) {
  const Status plain = check(result, "cuLaunchKernel");
  std::string message = plain.message();
  if (result == kOutOfResources)
    message += ". A block of " + std::to_string(block.x * block.y * block.z) + " threads with " +
               std::to_string(f.registers) + " registers each and " +
               std::to_string(shared + static_cast<unsigned>(f.static_shared)) +
               " bytes of shared memory does not fit a multiprocessor: use a smaller block";
  if (result == kCooperativeTooLarge)
    message += ". A cooperative kernel's blocks must all fit on the device at once: use a smaller grid";
  return {plain.code(), std::move(message)};
}

}  // namespace

Status load_module(int device, const std::string& image, CUmodule& out) {
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  const cuda::detail::RelaxedCapture relaxed;  // a kernel may be needed first while another thread captures
  const std::lock_guard lock(loaded().mutex);
  std::pair<int, std::string> key(device, image);
  if (const auto found = loaded().modules.find(key); found != loaded().modules.end()) {
    out = found->second;
    return {};
  }
  std::string log(8192, '\0');
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSizeBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  const CUresult result = driver().module_load_data_ex(&out, image.data(), 2, options, values);
  if (result != kSuccess) [[unlikely]]
    return load_failure(result, log.c_str());
  loaded().modules.emplace(std::move(key), out);
  return {};
}

Status get_function(CUmodule module, int device, const char* name, Function& out) {
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  const CUresult result = driver().module_get_function(&out.handle, module, name);
  if (result == kNotFound)
    return malformed(std::string("the module has no kernel '") + name +
                     "'. C++ mangles names: declare it extern \"C\", or give its expression in name_expressions");
  DLBRIDGE_TRY(check(result, "cuModuleGetFunction"));
  out.device = device;
  const std::pair<int, int*> wanted[] = {{0, &out.max_threads},
                                         {1, &out.static_shared},
                                         {4, &out.registers},
                                         {kFunctionMaxDynamicShared, &out.max_dynamic_shared}};
  for (const auto& [attribute, value] : wanted)
    DLBRIDGE_TRY(check(driver().func_get_attribute(value, attribute, out.handle), "cuFuncGetAttribute"));
  read_parameters(out);
  return {};
}

Status get_global(CUmodule module, int device, const char* name, CUdeviceptr& address, std::size_t& bytes) {
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  const CUresult result = driver().module_get_global(&address, &bytes, module, name);
  if (result == kNotFound)
    return malformed(std::string("the module has no global '") + name +
                     "'. C++ mangles names: declare it extern \"C\", or give its expression in name_expressions");
  return check(result, "cuModuleGetGlobal");
}

Status get_attribute(const Function& function, int code, int& value) {
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(function.device));
  return check(driver().func_get_attribute(&value, code, function.handle), "cuFuncGetAttribute");
}

Status set_attribute(Function& function, int code, int value) {
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(function.device));
  const LaunchLimits* limits = nullptr;
  DLBRIDGE_TRY(launch_limits(function.device, limits));
  if (code == kFunctionMaxDynamicShared && (value < 0 || value > limits->shared_optin - function.static_shared))
    return malformed("max_dynamic_shared_size_bytes is " + std::to_string(value) + "; with the kernel's " +
                     std::to_string(function.static_shared) + " bytes of static shared memory the device allows " +
                     std::to_string(limits->shared_optin - function.static_shared) + " at most");
  DLBRIDGE_TRY(check(driver().func_set_attribute(function.handle, code, value), "cuFuncSetAttribute"));
  if (code == kFunctionMaxDynamicShared) function.max_dynamic_shared = value;
  return {};
}

Status launch_limits(int device, const LaunchLimits*& out) {
  static auto* slots = new std::array<LimitsSlot, cuda::kMaxDevices>;
  static std::mutex mutex;
  if (device < 0 || device >= cuda::device_count() || device >= cuda::kMaxDevices) {
    DLBRIDGE_TRY(cuda::require_driver());
    return cuda::detail::no_such_device(device);
  }
  LimitsSlot& slot = (*slots)[static_cast<std::size_t>(device)];
  if (!slot.ready.load(std::memory_order_acquire)) [[unlikely]] {
    const std::lock_guard lock(mutex);
    if (!slot.ready.load(std::memory_order_acquire)) {
      DLBRIDGE_TRY(read_limits(device, slot.limits));
      slot.ready.store(true, std::memory_order_release);
    }
  }
  out = &slot.limits;
  return {};
}

Status check_launch(const Function& f, const LaunchLimits& limits, const Dim3& grid, const Dim3& block,
                    unsigned dynamic_shared) {
  const unsigned blocks[] = {grid.x, grid.y, grid.z};
  const unsigned threads[] = {block.x, block.y, block.z};
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<std::size_t>(axis);
    if (threads[k] == 0)
      return malformed(std::string("block dimension ") + kAxes[axis] + " is 0; a block has at least one thread");
    if (threads[k] > static_cast<unsigned>(limits.max_block[k])) [[unlikely]]
      return too_large("block", axis, threads[k], limits.max_block[k],
                       ". The arguments are (grid, block): are they swapped?");
    if (blocks[k] > static_cast<unsigned>(limits.max_grid[k])) [[unlikely]]
      return too_large("grid", axis, blocks[k], limits.max_grid[k],
                       axis == 0 ? "" : ". Put the largest extent in dimension x, or loop in the kernel");
  }
  const std::uint64_t total = std::uint64_t{block.x} * block.y * block.z;
  if (total > static_cast<std::uint64_t>(f.max_threads)) [[unlikely]]
    return malformed("the block has " + std::to_string(total) + " threads (" + std::to_string(block.x) + ", " +
                     std::to_string(block.y) + ", " + std::to_string(block.z) + "), and this kernel allows " +
                     std::to_string(f.max_threads) + " at most (it takes " + std::to_string(f.registers) +
                     " registers per thread). Use a smaller block");
  if (dynamic_shared > static_cast<unsigned>(f.max_dynamic_shared)) [[unlikely]]
    return malformed("shared_mem is " + std::to_string(dynamic_shared) + " bytes, and this kernel may have " +
                     std::to_string(f.max_dynamic_shared) +
                     ". Set kernel.max_dynamic_shared_size_bytes first; the "
                     "device allows " +
                     std::to_string(limits.shared_optin - f.static_shared));
  return {};
}

Status launch(const Function& f, const Dim3& grid, const Dim3& block, unsigned dynamic_shared, cuda::CUstream stream,
              void** parameters, bool cooperative) {
  const CUresult result = cooperative
                              ? driver().launch_cooperative_kernel(f.handle, grid.x, grid.y, grid.z, block.x, block.y,
                                                                   block.z, dynamic_shared, stream, parameters)
                              : driver().launch_kernel(f.handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                       dynamic_shared, stream, parameters, nullptr);
  if (result == kSuccess) [[likely]]
    return {};
  return explain_launch(result, f, block, dynamic_shared);
}

}  // namespace dlbridge::nd
