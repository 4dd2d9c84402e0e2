// The driver functions that the ndarray needs beside the bridge's (dlbridge/cuda_library.h): of the same libcuda.so.1,
// resolved once, on first use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dlbridge/cuda_driver.h"

namespace dlbridge::nd {

// The driver API's types under names of our own, so that a file may include <cuda.h> next to this one.
struct ModuleTag;
struct FunctionTag;
struct LinkStateTag;
struct GraphTag;
struct GraphExecTag;
struct MemPoolTag;
using cuda::CUcontext;
using cuda::CUdevice;
using cuda::CUdeviceptr;
using cuda::CUevent;
using cuda::CUresult;
using cuda::CUstream;
using CUmodule = ModuleTag*;
using CUfunction = FunctionTag*;
using CUlinkState = LinkStateTag*;
using CUgraph = GraphTag*;
using CUgraphExec = GraphExecTag*;
using CUmemoryPool = MemPoolTag*;
using CUhostFn = void (*)(void* data);
using CUoccupancyB2DSize = std::size_t (*)(int block_size);

// CUmemPoolProps, CUmemAccessDesc and CUuuid of cuda.h: the layout is ABI.
struct MemLocation {
  int type;
  int id;
};
struct MemPoolProps {
  int allocation_type;
  int handle_types;
  MemLocation location;
  void* win32_security_attributes;
  std::size_t max_size;
  unsigned char reserved[56];
};
static_assert(sizeof(void*) != 8 || sizeof(MemPoolProps) == 88);
struct MemAccess {
  MemLocation location;
  int flags;
};
struct DeviceUuid {
  unsigned char bytes[16];
};

// The values of cuda.h that are used here.
inline constexpr CUresult kDeinitialized = 4;
inline constexpr CUresult kNotReady = 600;
inline constexpr CUresult kNotSupported = 801;
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kMemAttachGlobal = 1;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr int kMemAllocationPinned = 1;
inline constexpr int kMemLocationDevice = 1;
inline constexpr int kMemAccessReadWrite = 3;
inline constexpr int kPoolReleaseThreshold = 4;
inline constexpr int kPoolReservedCurrent = 5;
inline constexpr int kPoolUsedCurrent = 7;
inline constexpr int kAttributeManagedMemory = 83;
inline constexpr int kAttributeComputeMajor = 75;
inline constexpr int kAttributeComputeMinor = 76;

// Member, symbol, parameters. The symbols are those behind cuda.h's macros whose signature is meant.
#define DLBRIDGE_ND_DRIVER(X)                                                                                         \
  /* devices and contexts */                                                                                          \
  X(device_get_name, "cuDeviceGetName", (char*, int, CUdevice))                                                       \
  X(device_total_mem, "cuDeviceTotalMem_v2", (std::size_t*, CUdevice))                                                \
  X(device_get_uuid, "cuDeviceGetUuid_v2", (DeviceUuid*, CUdevice))                                                   \
  X(device_get_pci_bus_id, "cuDeviceGetPCIBusId", (char*, int, CUdevice))                                             \
  X(ctx_set_current, "cuCtxSetCurrent", (CUcontext))                                                                  \
  X(ctx_synchronize, "cuCtxSynchronize", ())                                                                          \
  X(ctx_get_stream_priority_range, "cuCtxGetStreamPriorityRange", (int*, int*))                                       \
  X(ctx_get_limit, "cuCtxGetLimit", (std::size_t*, int))                                                              \
  X(ctx_set_limit, "cuCtxSetLimit", (int, std::size_t))                                                               \
  /* memory */                                                                                                        \
  X(mem_get_info, "cuMemGetInfo_v2", (std::size_t*, std::size_t*))                                                    \
  X(mem_alloc_managed, "cuMemAllocManaged", (CUdeviceptr*, std::size_t, unsigned))                                    \
  X(mem_host_alloc, "cuMemHostAlloc", (void**, std::size_t, unsigned))                                                \
  X(mem_free_host, "cuMemFreeHost", (void*))                                                                          \
  X(mem_host_register, "cuMemHostRegister_v2", (void*, std::size_t, unsigned))                                        \
  X(mem_host_unregister, "cuMemHostUnregister", (void*))                                                              \
  X(mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr*, void*, unsigned))                     \
  X(memset_d8_async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, std::size_t, CUstream))                          \
  X(memset_d32_async, "cuMemsetD32Async", (CUdeviceptr, unsigned, std::size_t, CUstream))                             \
  X(device_get_default_mem_pool, "cuDeviceGetDefaultMemPool", (CUmemoryPool*, CUdevice))                              \
  X(mem_pool_create, "cuMemPoolCreate", (CUmemoryPool*, const MemPoolProps*))                                         \
  X(mem_pool_destroy, "cuMemPoolDestroy", (CUmemoryPool))                                                             \
  X(mem_pool_trim_to, "cuMemPoolTrimTo", (CUmemoryPool, std::size_t))                                                 \
  X(mem_pool_set_attribute, "cuMemPoolSetAttribute", (CUmemoryPool, int, void*))                                      \
  X(mem_pool_get_attribute, "cuMemPoolGetAttribute", (CUmemoryPool, int, void*))                                      \
  X(mem_pool_set_access, "cuMemPoolSetAccess", (CUmemoryPool, const MemAccess*, std::size_t))                         \
  X(mem_alloc_from_pool_async, "cuMemAllocFromPoolAsync", (CUdeviceptr*, std::size_t, CUmemoryPool, CUstream))        \
  /* streams, events, graphs */                                                                                       \
  X(stream_create_with_priority, "cuStreamCreateWithPriority", (CUstream*, unsigned, int))                            \
  X(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                                                 \
  X(stream_query, "cuStreamQuery", (CUstream))                                                                        \
  X(stream_get_flags, "cuStreamGetFlags", (CUstream, unsigned*))                                                      \
  X(stream_get_priority, "cuStreamGetPriority", (CUstream, int*))                                                     \
  X(stream_begin_capture, "cuStreamBeginCapture_v2", (CUstream, int))                                                 \
  X(stream_end_capture, "cuStreamEndCapture", (CUstream, CUgraph*))                                                   \
  X(launch_host_func, "cuLaunchHostFunc", (CUstream, CUhostFn, void*))                                                \
  X(event_query, "cuEventQuery", (CUevent))                                                                           \
  X(event_elapsed_time, "cuEventElapsedTime", (float*, CUevent, CUevent))                                             \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec*, CUgraph, unsigned long long))                    \
  X(graph_launch, "cuGraphLaunch", (CUgraphExec, CUstream))                                                           \
  X(graph_upload, "cuGraphUpload", (CUgraphExec, CUstream))                                                           \
  X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec))                                                          \
  X(graph_destroy, "cuGraphDestroy", (CUgraph))                                                                       \
  /* modules and launches */                                                                                          \
  X(module_load_data, "cuModuleLoadData", (CUmodule*, const void*))                                                   \
  X(module_load_data_ex, "cuModuleLoadDataEx", (CUmodule*, const void*, unsigned, int*, void**))                      \
  X(module_unload, "cuModuleUnload", (CUmodule))                                                                      \
  X(module_get_function, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*))                                 \
  X(module_get_global, "cuModuleGetGlobal_v2", (CUdeviceptr*, std::size_t*, CUmodule, const char*))                   \
  X(func_get_attribute, "cuFuncGetAttribute", (int*, int, CUfunction))                                                \
  X(func_set_attribute, "cuFuncSetAttribute", (CUfunction, int, int))                                                 \
  X(func_set_cache_config, "cuFuncSetCacheConfig", (CUfunction, int))                                                 \
  X(occupancy_max_potential_block_size, "cuOccupancyMaxPotentialBlockSize",                                           \
    (int*, int*, CUfunction, CUoccupancyB2DSize, std::size_t, int))                                                   \
  X(occupancy_max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int*, CUfunction, int, std::size_t)) \
  X(launch_kernel, "cuLaunchKernel",                                                                                  \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**))     \
  X(launch_cooperative_kernel, "cuLaunchCooperativeKernel",                                                           \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**))             \
  X(link_create, "cuLinkCreate_v2", (unsigned, int*, void**, CUlinkState*))                                           \
  X(link_add_data, "cuLinkAddData_v2", (CUlinkState, int, void*, std::size_t, const char*, unsigned, int*, void**))   \
  X(link_complete, "cuLinkComplete", (CUlinkState, void**, std::size_t*))                                             \
  X(link_destroy, "cuLinkDestroy", (CUlinkState))                                                                     \
  /* profiler */                                                                                                      \
  X(profiler_start, "cuProfilerStart", ())                                                                            \
  X(profiler_stop, "cuProfilerStop", ())

// Never null: what this driver lacks answers kNotSupported, and everything kNotInitialized where there is no driver.
struct Driver {
#define DLBRIDGE_ND_DRIVER_MEMBER(member, symbol, parameters) CUresult(*member) parameters = nullptr;
  DLBRIDGE_ND_DRIVER(DLBRIDGE_ND_DRIVER_MEMBER)
#undef DLBRIDGE_ND_DRIVER_MEMBER
};

namespace detail {
const Driver& load_driver() noexcept;  // driver.cpp
}

inline const Driver& driver() noexcept {
  static const Driver& loaded = detail::load_driver();
  return loaded;
}

}  // namespace dlbridge::nd
