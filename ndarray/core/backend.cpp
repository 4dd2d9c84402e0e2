#include "ndarray/core/backend.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include "dlbridge/cuda_device.h"
#include "dlbridge/cuda_driver.h"

namespace dlbridge::nd {

namespace {

constexpr const char* kLibraryName = "libdlbridge_kernels.so";

std::string& library_folder() {
  static auto* folder = new std::string;
  return *folder;
}
std::string library_path() { return library_folder() + "/" + kLibraryName; }

struct Loaded {
  const Backend* backend = nullptr;
  std::string why;
};

Loaded load_kernels() {
  const std::string path = library_path();
  if (!cuda_kernels_present())
    return {nullptr,
            "dlbridge was built without its CUDA kernels (no " + path +
                "). Install it with DLBRIDGE_CUDA=ON in the environment: pip install --no-binary dlbridge dlbridge"};
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return {nullptr, std::string("the kernel library cannot be loaded: ") + (why != nullptr ? why : path.c_str())};
  }
  const auto get = reinterpret_cast<decltype(&dlbridge_nd_cuda_backend)>(::dlsym(handle, kCudaBackendSymbol));
  if (get == nullptr || get()->version != kKernelApiVersion)
    return {nullptr, path + " belongs to another version of dlbridge. Reinstall the package"};
  return {get(), {}};
}

Status cuda_backend(const Backend*& out) {
  static const auto* const loaded = new Loaded(load_kernels());
  out = loaded->backend;
  if (out != nullptr) [[likely]]
    return {};
  return {ErrorCode::kCuda, loaded->why};
}

}  // namespace

void set_kernel_library_folder(const char* folder) { library_folder() = folder; }

bool cuda_kernels_present() {
  static const bool present = ::access(library_path().c_str(), R_OK) == 0;
  return present;
}

DLDevice default_device() {
  int device = 0;
  if (!cuda::available() || !cuda_kernels_present() || !cuda::current_device(device).ok()) return {kDLCPU, 0};
  return {kDLCUDA, device};
}

Status check_device(DLDevice device) {
  if (is_cuda(device)) {
    const bool exists = device.device_id >= 0 && device.device_id < cuda::device_count();
    if (exists && cuda_kernels_present()) return {};
    const std::string why = !cuda::available() ? cuda::unavailable_reason()
                            : !cuda_kernels_present()
                                ? "dlbridge was built without its CUDA kernels (DLBRIDGE_CUDA=ON builds them)"
                                : "there are " + std::to_string(cuda::device_count()) + " CUDA devices";
    return malformed("device " + device_name(device) + " cannot be used: " + why + ". Use device='cpu'");
  }
  if (device.device_type == kDLCPU && device.device_id != 0)
    return malformed("device (1, " + std::to_string(device.device_id) +
                     ") does not exist: the host is one device, (1, 0). Use device='cpu'");
  if (is_host(device)) return {};
  return malformed("device " + device_name(device) + " is neither the host nor CUDA");
}

Status backend_for(DLDevice device, const Backend*& out) {
  if (!is_cuda(device)) {
    out = &kHostBackend;
    return {};
  }
  return cuda_backend(out);
}

Status kernel_status(const Backend& backend, int code, const char* what) {
  if (code == 0) [[likely]]
    return {};
  std::string message = std::string(what) + ": " + backend.error_text(code);
  if (code == kErrorMemory) return {ErrorCode::kOutOfMemory, std::move(message)};
  if (code == kErrorUnsupported) return {ErrorCode::kWrongType, std::move(message)};
  if (code == kErrorIndex) return {ErrorCode::kIndex, std::move(message)};
  return {ErrorCode::kCuda, std::move(message) + " (cudaError " + std::to_string(code) + ")"};
}

}  // namespace dlbridge::nd
