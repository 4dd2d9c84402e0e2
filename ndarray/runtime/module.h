// User kernels on a device: modules of machine code or PTX, their functions and globals, and the limits of a launch.
//
// A module stays loaded for the life of the process, and one image is loaded once a device: a kernel may be on its way
// on any stream, and a captured graph may replay it long after the Python object that made it is gone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dlbridge/errors.h"
#include "ndarray/runtime/driver.h"

namespace dlbridge::nd {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// CUfunction_attribute: what a user may ask for. Names as CuPy's users know them.
struct FunctionAttribute {
  const char* name;
  int code;
};
inline constexpr std::array<FunctionAttribute, 10> kFunctionAttributes{{
    {"max_threads_per_block", 0},
    {"shared_size_bytes", 1},
    {"const_size_bytes", 2},
    {"local_size_bytes", 3},
    {"num_regs", 4},
    {"ptx_version", 5},
    {"binary_version", 6},
    {"cache_mode_ca", 7},
    {"max_dynamic_shared_size_bytes", 8},
    {"preferred_shared_memory_carveout", 9},
}};
inline constexpr int kFunctionMaxDynamicShared = 8;

// A kernel of a loaded module. Immutable but for max_dynamic_shared.
struct Function {
  CUfunction handle = nullptr;
  int device = -1;
  int max_threads = 0;            // a block
  int registers = 0;              // a thread
  int static_shared = 0;          // bytes
  int max_dynamic_shared = 0;     // bytes
  bool parameters_known = false;  // the driver tells them since CUDA 12.4
  std::vector<std::uint32_t> parameter_bytes;
};

// Loads a cubin, a fatbin or PTX. `image` is followed by a zero byte (std::string's data() is). Creates the device's
// primary context where it has none. A refusal carries the JIT's log.
Status load_module(int device, const std::string& image, CUmodule& out);

Status get_function(CUmodule module, int device, const char* name, Function& out);
Status get_global(CUmodule module, int device, const char* name, CUdeviceptr& address, std::size_t& bytes);
Status get_attribute(const Function& function, int code, int& value);
Status set_attribute(Function& function, int code, int value);

struct LaunchLimits {
  int max_threads = 0;  // a block
  std::array<int, 3> max_block{};
  std::array<int, 3> max_grid{};
  int shared = 0;        // bytes a block may ask for by default
  int shared_optin = 0;  // with max_dynamic_shared_size_bytes set
  int multiprocessors = 0;
  int compute_capability = 0;  // 90 for 9.0
};
// Asked once a device. Needs no context.
Status launch_limits(int device, const LaunchLimits*& out);

// Refuses what the driver would only call an invalid value: says which dimension is too large, and what is allowed.
// grid extents of 0 are fine (nothing runs).
Status check_launch(const Function& function, const LaunchLimits& limits, const Dim3& grid, const Dim3& block,
                    unsigned dynamic_shared);

// Queues the kernel; the function's device is current. `parameters` point to the arguments' values, which are taken at
// the call.
Status launch(const Function& function, const Dim3& grid, const Dim3& block, unsigned dynamic_shared,
              cuda::CUstream stream, void** parameters, bool cooperative = false);

}  // namespace dlbridge::nd
