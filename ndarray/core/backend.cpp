#include "ndarray/core/backend.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "dlbridge/cuda_device.h"
#include "dlbridge/cuda_driver.h"
#include "dlbridge/version.h"

namespace dlbridge::nd {

namespace {

std::string& library_path() {
  static auto* path = new std::string;
  return *path;
}

const std::string& how_to_get_kernels() {
  static const auto* const text = new std::string(
      "dlbridge's CUDA kernels are not installed (no " + library_path() +
      "). pip install 'dlbridge[cuda13]' brings them; a build from source has them with DLBRIDGE_CUDA=ON");
  return *text;
}

std::string release_text(int release) {
  return std::to_string(release / 1'000'000) + "." + std::to_string(release / 1000 % 1000) + "." +
         std::to_string(release % 1000);
}

struct Loaded {
  const Backend* backend = nullptr;
  std::string why;
};

Loaded load_kernels() {
  const std::string& path = library_path();
  if (!cuda_kernels_present()) return {nullptr, how_to_get_kernels()};
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return {nullptr, std::string("the kernel library cannot be loaded: ") + (why != nullptr ? why : path.c_str())};
  }
  const auto get = reinterpret_cast<decltype(&dlbridge_nd_cuda_backend)>(::dlsym(handle, kCudaBackendSymbol));
  if (get == nullptr) return {nullptr, path + " is no kernel library of dlbridge. Reinstall the package"};
  if (get()->release != kKernelRelease)
    return {nullptr, path + " is of dlbridge " + release_text(get()->release) +
                         ", and this is dlbridge " DLBRIDGE_VERSION
                         ". Install what belongs to it: pip install 'dlbridge[cuda13]==" DLBRIDGE_VERSION "'"};
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

void set_kernel_library(std::string path) { library_path() = std::move(path); }
const std::string& kernel_library() { return library_path(); }

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
                                ? how_to_get_kernels()
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
