// Finds cuBLAS, declares the little of it that is used, and turns row-major products into its column-major ones.
#include "ndarray/kernels/cuda/cublas.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlbridge::nd::cuda_kernels {
namespace {

// --- the library ----------------------------------------------------------------------------------------------------

using Handle = void*;
using Status = int;

// cublas_api.h and library_types.h, of CUDA 12 and 13 alike.
constexpr Status kSuccess = 0, kAllocationFailed = 3, kNotSupported = 15;
constexpr int kOpN = 0, kOpT = 1;
constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kComplex32 = 4, kComplex64 = 5, kBrain16 = 14;
constexpr int kCompute32 = 68, kCompute64 = 70;
constexpr int kDefaultAlgorithm = -1;
constexpr int kNoReducedReduction = 16;  // sums of 16-bit floats stay in float32 across split products too

template <class Int>
using GemmStridedBatchedEx = Status (*)(Handle, int, int, Int, Int, Int, const void*, const void*, int, Int, long long,
                                        const void*, int, Int, long long, const void*, void*, int, Int, long long, Int,
                                        int, int);

struct Library {
  Status (*create)(Handle*) = nullptr;
  Status (*set_stream)(Handle, cudaStream_t) = nullptr;
  Status (*set_workspace)(Handle, void*, std::size_t) = nullptr;
  Status (*set_math_mode)(Handle, int) = nullptr;
  GemmStridedBatchedEx<int> gemm = nullptr;
  GemmStridedBatchedEx<std::int64_t> gemm64 = nullptr;  // since CUDA 12

  bool load(void* file) {
    const auto find = [file](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(file, name));
      return function != nullptr;
    };
    find(gemm64, "cublasGemmStridedBatchedEx_64");
    return find(create, "cublasCreate_v2") && find(set_stream, "cublasSetStream_v2") &&
           find(set_workspace, "cublasSetWorkspace_v2") && find(set_math_mode, "cublasSetMathMode") &&
           find(gemm, "cublasGemmStridedBatchedEx");
  }
};

std::mutex& paths_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::vector<std::string>& given_paths() {
  static std::vector<std::string> paths;
  return paths;
}

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
}

// Folders that may hold a libcublas: those given, the wheels beside this library's package, and the toolkit.
std::vector<std::string> candidate_folders() {
  std::vector<std::string> folders;
  {
    const std::lock_guard lock(paths_mutex());
    folders = given_paths();
  }
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&dlbridge_nd_cuda_set_library_paths), &here) != 0 && here.dli_fname) {
    const std::string site_packages = parent(parent(here.dli_fname));
    for (const char* wheel : {"/nvidia/cu13/lib", "/nvidia/cublas/lib"}) folders.push_back(site_packages + wheel);
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root != nullptr) folders.push_back(std::string(root) + "/lib64");
  folders.push_back("/usr/local/cuda/lib64");
  return folders;
}

void* open_library() {
  constexpr const char* kVersions[] = {".so.13", ".so.12"};
  for (const char* version : kVersions) {  // one that the process has already, such as PyTorch's
    const std::string name = std::string("libcublas") + version;
    if (void* file = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return file;
  }
  const std::vector<std::string> folders = candidate_folders();
  for (const char* version : kVersions) {
    for (const std::string& folder : folders) {
      const std::string base = folder + "/libcublas";
      // libcublas needs libcublasLt, and a wheel's does not always say where it lies: once loaded it is found by name.
      ::dlopen((base + "Lt" + version).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (void* file = ::dlopen((base + version).c_str(), RTLD_NOW | RTLD_LOCAL)) return file;
    }
    if (void* file = ::dlopen((std::string("libcublas") + version).c_str(), RTLD_NOW | RTLD_LOCAL)) return file;
  }
  return nullptr;
}

const Library* library() {
  static const std::optional<Library> loaded = []() -> std::optional<Library> {
    Library found;
    void* file = open_library();
    if (file == nullptr || !found.load(file)) return std::nullopt;
    return found;
  }();
  return loaded ? &*loaded : nullptr;
}

// --- a handle a device, used under its lock; never destroyed: at exit the driver may be gone before us ---------------

constexpr int kMostDevices = 64;
struct DeviceHandle {
  std::mutex mutex;
  Handle handle = nullptr;
  bool failed = false;
};

DeviceHandle* device_handle() {
  static auto* handles = new DeviceHandle[kMostDevices];
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= kMostDevices) return nullptr;
  return &handles[device];
}

bool ensure_handle(const Library& cublas, DeviceHandle& entry) {
  if (entry.handle != nullptr) return true;
  if (entry.failed) return false;
  if (cublas.create(&entry.handle) == kSuccess && cublas.set_math_mode(entry.handle, kNoReducedReduction) == kSuccess)
    return true;
  cudaGetLastError();
  entry.handle = nullptr;
  entry.failed = true;
  return false;
}

// --- the product ----------------------------------------------------------------------------------------------------

struct Layout {
  int op;  // of the matrix read as column-major, which is its transpose
  std::int64_t leading;
};

// Row-major, or the transpose of it; nothing for strides that cuBLAS cannot say (0, negative, overlapping).
std::optional<Layout> layout_of(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  if ((column == 1 || columns == 1) && (rows == 1 || row >= columns)) return Layout{kOpN, rows == 1 ? columns : row};
  if ((row == 1 || rows == 1) && (columns == 1 || column >= rows)) return Layout{kOpT, columns == 1 ? rows : column};
  return std::nullopt;
}

// cuBLAS reads a complex128 with one 16-byte load that must be aligned.
union alignas(16) Scalar {
  float f[2];
  double d[2];
};

struct Types {
  int data, compute;
  Scalar one;
};

std::optional<Types> types_of(DType dtype) {
  const Scalar single{{1, 0}};
  Scalar twofold;
  twofold.d[0] = 1;
  twofold.d[1] = 0;
  switch (dtype) {
    case DType::kFloat16: return Types{kReal16, kCompute32, single};
    case DType::kBFloat16: return Types{kBrain16, kCompute32, single};
    case DType::kFloat32: return Types{kReal32, kCompute32, single};
    case DType::kComplex64: return Types{kComplex32, kCompute32, single};
    case DType::kFloat64: return Types{kReal64, kCompute64, twofold};
    case DType::kComplex128: return Types{kComplex64, kCompute64, twofold};
    default: return std::nullopt;
  }
}

// C = A B in rows is C' = B' A' in columns: B comes first.
template <class Int>
Status call(GemmStridedBatchedEx<Int> gemm, Handle handle, const MatmulArgs& args, const Types& types, const Layout& a,
            const Layout& b) {
  const Scalar zero{};
  const auto n = [](std::int64_t value) { return static_cast<Int>(value); };
  return gemm(handle, b.op, a.op, n(args.n), n(args.m), n(args.k), &types.one, args.b, types.data, n(b.leading),
              args.b_batch, args.a, types.data, n(a.leading), args.a_batch, &zero, args.c, types.data, n(args.n),
              args.c_batch, n(args.batch), types.compute, kDefaultAlgorithm);
}

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what the manual asks for on Hopper

}  // namespace

CublasResult cublas_matmul(const MatmulArgs& args, int& code) {
  const auto types = types_of(args.dtype);
  const auto a = layout_of(args.m, args.k, args.a_row, args.a_column);
  const auto b = layout_of(args.k, args.n, args.b_row, args.b_column);
  if (!types || !a || !b || args.a_batch < 0 || args.b_batch < 0) return CublasResult::kRefused;
  const Library* cublas = library();
  DeviceHandle* entry = cublas != nullptr ? device_handle() : nullptr;
  if (entry == nullptr) return CublasResult::kRefused;
  const bool small = std::max({args.m, args.n, args.k, args.batch, a->leading, b->leading}) <=
                     std::int64_t{std::numeric_limits<int>::max()};
  if (!small && cublas->gemm64 == nullptr) return CublasResult::kRefused;

  const std::lock_guard lock(entry->mutex);
  if (!ensure_handle(*cublas, *entry)) return CublasResult::kRefused;
  Status status = cublas->set_stream(entry->handle, reinterpret_cast<cudaStream_t>(args.stream));
  // Streams must not share scratch memory: each call brings its own, from the pool of its stream.
  void* workspace = args.workspace.allocate != nullptr ? args.workspace.get(kWorkspaceBytes) : nullptr;
  if (status == kSuccess && workspace != nullptr)
    status = cublas->set_workspace(entry->handle, workspace, kWorkspaceBytes);
  if (status == kSuccess)
    status = small ? call(cublas->gemm, entry->handle, args, *types, *a, *b)
                   : call(cublas->gemm64, entry->handle, args, *types, *a, *b);
  if (status == kSuccess) return CublasResult::kDone;
  if (status == kNotSupported) return CublasResult::kRefused;
  const cudaError_t error = cudaGetLastError();
  code = status == kAllocationFailed ? kErrorMemory
         : error != cudaSuccess      ? static_cast<int>(error)
                                     : static_cast<int>(cudaErrorUnknown);
  return CublasResult::kFailed;
}

}  // namespace dlbridge::nd::cuda_kernels

extern "C" __attribute__((visibility("default"))) int dlbridge_nd_cuda_set_library_paths(
    const char* const* folders) noexcept {
  namespace kernels = dlbridge::nd::cuda_kernels;
  const std::lock_guard lock(kernels::paths_mutex());
  kernels::given_paths().clear();
  for (; folders != nullptr && *folders != nullptr; ++folders) kernels::given_paths().emplace_back(*folders);
  return 0;
}
