// libcuda.so.1, opened at run time on first use: no CUDA header, no toolkit and no GPU is needed to build.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "dlbridge/errors.h"

namespace dlbridge::cuda {

// The driver API's types under names of our own, so that a file may include <cuda.h> next to this one.
struct ContextTag;
struct StreamTag;
struct EventTag;
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uintptr_t;
using CUcontext = ContextTag*;
using CUstream = StreamTag*;
using CUevent = EventTag*;

inline constexpr int kMaxDevices = 64;

// CUDA_MEMCPY2D of cuda.h: the layout is ABI.
struct Memcpy2D {
  std::size_t src_x_bytes, src_y;
  unsigned src_memory_type;
  const void* src_host;
  CUdeviceptr src_device;
  void* src_array;
  std::size_t src_pitch;
  std::size_t dst_x_bytes, dst_y;
  unsigned dst_memory_type;
  void* dst_host;
  CUdeviceptr dst_device;
  void* dst_array;
  std::size_t dst_pitch;
  std::size_t width_bytes, height;
};
static_assert(sizeof(void*) != 8 || sizeof(Memcpy2D) == 128);

// The values of cuda.h that are used here.
inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kInvalidValue = 1;
inline constexpr CUresult kOutOfMemoryResult = 2;
inline constexpr CUresult kNotInitialized = 3;
inline constexpr CUresult kInvalidContext = 201;
inline constexpr CUresult kInvalidHandle = 400;
inline constexpr CUresult kPeerAccessAlreadyEnabled = 704;
inline constexpr CUresult kContextIsDestroyed = 709;
inline constexpr CUresult kCaptureImplicit = 906;
inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kCaptureModeRelaxed = 2;
inline constexpr int kAttributeMemoryType = 2;
inline constexpr int kAttributeIsManaged = 8;
inline constexpr int kAttributeDeviceOrdinal = 9;
inline constexpr int kAttributeMemoryPoolsSupported = 115;

// Member, symbol, parameters. cuda.h defines cuMemAlloc and others as macros for the versioned names: those are the
// symbols whose signature is meant.
#define DLBRIDGE_CUDA_REQUIRED(X)                                                                                    \
  X(init, "cuInit", (unsigned))                                                                                      \
  X(driver_get_version, "cuDriverGetVersion", (int*))                                                                \
  X(get_error_name, "cuGetErrorName", (CUresult, const char**))                                                      \
  X(get_error_string, "cuGetErrorString", (CUresult, const char**))                                                  \
  X(device_get_count, "cuDeviceGetCount", (int*))                                                                    \
  X(device_get_attribute, "cuDeviceGetAttribute", (int*, int, CUdevice))                                             \
  X(device_can_access_peer, "cuDeviceCanAccessPeer", (int*, CUdevice, CUdevice))                                     \
  X(device_primary_ctx_retain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                                   \
  X(ctx_get_current, "cuCtxGetCurrent", (CUcontext*))                                                                \
  X(ctx_get_device, "cuCtxGetDevice", (CUdevice*))                                                                   \
  X(ctx_push_current, "cuCtxPushCurrent_v2", (CUcontext))                                                            \
  X(ctx_pop_current, "cuCtxPopCurrent_v2", (CUcontext*))                                                             \
  X(ctx_enable_peer_access, "cuCtxEnablePeerAccess", (CUcontext, unsigned))                                          \
  X(pointer_get_attributes, "cuPointerGetAttributes", (unsigned, const int*, void**, CUdeviceptr))                   \
  X(stream_create, "cuStreamCreate", (CUstream*, unsigned))                                                          \
  X(stream_synchronize, "cuStreamSynchronize", (CUstream))                                                           \
  X(stream_wait_event, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                                           \
  X(stream_is_capturing, "cuStreamIsCapturing", (CUstream, int*))                                                    \
  X(stream_get_ctx, "cuStreamGetCtx", (CUstream, CUcontext*))                                                        \
  X(thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                                       \
  X(event_create, "cuEventCreate", (CUevent*, unsigned))                                                             \
  X(event_destroy, "cuEventDestroy_v2", (CUevent))                                                                   \
  X(event_record, "cuEventRecord", (CUevent, CUstream))                                                              \
  X(event_synchronize, "cuEventSynchronize", (CUevent))                                                              \
  X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr*, std::size_t))                                                         \
  X(mem_free, "cuMemFree_v2", (CUdeviceptr))                                                                         \
  X(memcpy_htod_async, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, std::size_t, CUstream))                    \
  X(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, std::size_t, CUstream))                          \
  X(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))                    \
  X(memcpy_peer_async, "cuMemcpyPeerAsync", (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream)) \
  X(memcpy_2d_async, "cuMemcpy2DAsync_v2", (const Memcpy2D*, CUstream))

// Null in drivers older than CUDA 11.3; whoever uses one checks.
#define DLBRIDGE_CUDA_OPTIONAL(X)                                              \
  X(mem_alloc_async, "cuMemAllocAsync", (CUdeviceptr*, std::size_t, CUstream)) \
  X(mem_free_async, "cuMemFreeAsync", (CUdeviceptr, CUstream))                 \
  X(stream_get_capture_info, "cuStreamGetCaptureInfo_v2",                      \
    (CUstream, int*, std::uint64_t*, void**, const void**, std::size_t*))

struct Functions {
#define DLBRIDGE_CUDA_MEMBER(member, symbol, parameters) CUresult(*member) parameters = nullptr;
  DLBRIDGE_CUDA_REQUIRED(DLBRIDGE_CUDA_MEMBER)
  DLBRIDGE_CUDA_OPTIONAL(DLBRIDGE_CUDA_MEMBER)
#undef DLBRIDGE_CUDA_MEMBER
};

struct Library {
  Functions fn;
  std::string reason;  // why CUDA cannot be used; empty when it can
  int device_count = 0;
  int driver_version = 0;  // 1000 * major + 10 * minor
  pid_t pid = 0;           // the process that called cuInit: a forked child cannot use the driver
};

namespace detail {
inline std::string error_text(const Functions& fn, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (fn.get_error_name != nullptr) static_cast<void>(fn.get_error_name(result, &name));
  if (fn.get_error_string != nullptr) static_cast<void>(fn.get_error_string(result, &text));
  std::string out = name != nullptr ? name : "CUresult " + std::to_string(result);
  if (text != nullptr) out.append(" (").append(text).append(")");
  return out;
}

inline std::string resolve(void* handle, Functions& fn) {
#define DLBRIDGE_CUDA_RESOLVE(member, symbol, parameters) \
  fn.member = reinterpret_cast<decltype(fn.member)>(::dlsym(handle, symbol));
  DLBRIDGE_CUDA_REQUIRED(DLBRIDGE_CUDA_RESOLVE)
  DLBRIDGE_CUDA_OPTIONAL(DLBRIDGE_CUDA_RESOLVE)
#undef DLBRIDGE_CUDA_RESOLVE
#define DLBRIDGE_CUDA_DEMAND(member, symbol, parameters) \
  if (fn.member == nullptr) return "libcuda.so.1 has no " symbol ": the NVIDIA driver is too old; update it";
  DLBRIDGE_CUDA_REQUIRED(DLBRIDGE_CUDA_DEMAND)
#undef DLBRIDGE_CUDA_DEMAND
  return {};
}

inline std::string initialise(Library& library) {
  // Never closed: owners free device memory until the very end of the process.
  void* handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return std::string("libcuda.so.1 cannot be opened (") + (why != nullptr ? why : "no reason given") +
           "): no NVIDIA driver is installed here, or it is not on the library path";
  }
  std::string missing = resolve(handle, library.fn);
  if (!missing.empty()) return missing;
  if (const CUresult result = library.fn.init(0); result != kSuccess)
    return "cuInit failed with " + error_text(library.fn, result) + ": no usable GPU on this machine";
  library.pid = ::getpid();
  static_cast<void>(library.fn.driver_get_version(&library.driver_version));
  if (const CUresult result = library.fn.device_get_count(&library.device_count); result != kSuccess)
    return "cuDeviceGetCount failed with " + error_text(library.fn, result);
  if (library.device_count <= 0) {
    library.device_count = 0;
    return "the CUDA driver sees no device (CUDA_VISIBLE_DEVICES may hide it)";
  }
  return {};
}

[[gnu::cold, gnu::noinline]] inline const Library* open_library() noexcept {
  static const Library none{};
  try {
    auto* library = new Library;  // never freed: see initialise()
    try {
      library->reason = initialise(*library);
    } catch (const std::exception& e) {
      library->reason = e.what();
    }
    if (!library->reason.empty()) library->device_count = 0;
    return library;
  } catch (...) {
    return &none;  // out of memory: device_count is 0, nothing will be called
  }
}
}  // namespace detail

// The driver, loaded by the first call from any thread. Costs a load and a test afterwards.
inline const Library& library() noexcept {
  static const Library* const loaded = detail::open_library();
  return *loaded;
}
inline const Functions& functions() noexcept { return library().fn; }

inline bool available() noexcept { return library().device_count > 0; }
inline int device_count() noexcept { return library().device_count; }
// 1000 * major + 10 * minor of the CUDA version that the driver supports; 0 without one.
inline int driver_version() noexcept { return library().driver_version; }
inline std::string unavailable_reason() {
  if (available()) return {};
  return library().reason.empty() ? "out of memory while the CUDA driver was loaded" : library().reason;
}

namespace detail {
// Errors after which every later call in the process fails the same way: the context is lost.
constexpr bool is_sticky(CUresult result) noexcept {
  return result == 214 || result == 220 || result == 226 || result == 700 || result == 702 || result == 710 ||
         (result >= 714 && result <= 719) || result == 721;
}
constexpr bool is_capture_error(CUresult result) noexcept { return result >= 900 && result <= 908; }

inline std::string hex(std::uintptr_t value) {
  char text[2 + 2 * sizeof(value) + 1];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

[[gnu::cold, gnu::noinline]] inline Status failure(CUresult result, const char* what) {
  std::string message = std::string(what) + " failed with " + error_text(functions(), result);
  if (result == kOutOfMemoryResult)
    return {ErrorCode::kOutOfMemory, std::move(message) + ". Free device memory first, or copy to another device"};
  if (library().pid != 0 && library().pid != ::getpid())
    message += "; CUDA was initialised before this process was forked, and the driver does not work in the child. "
               "Start the process with the 'spawn' method";
  else if (is_sticky(result))
    message += "; the error is sticky: it comes from earlier work on the device, and every later CUDA call in this "
               "process will fail with it. Fix that kernel and restart the process";
  else if (is_capture_error(result))
    message += "; a CUDA graph is being captured. Exchange the array before the capture, or on the capturing stream";
  return {ErrorCode::kCuda, std::move(message)};
}

[[gnu::cold, gnu::noinline]] inline Status no_driver() {
  return {ErrorCode::kCuda, "CUDA is not available: " + unavailable_reason()};
}
}  // namespace detail

// `what` is the name of the driver function.
inline Status check(CUresult result, const char* what) {
  if (result == kSuccess) [[likely]]
    return {};
  return detail::failure(result, what);
}

// Fails with the reason where there is no driver or no device.
inline Status require_driver() {
  if (available()) [[likely]]
    return {};
  return detail::no_driver();
}

}  // namespace dlbridge::cuda
