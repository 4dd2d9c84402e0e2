#include "ndarray/kernels/host/openblas.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace dlbridge::nd::host_kernels {
namespace {

// What stands before and behind the names: scipy_ in wheels, 64_ where integers are wide, nothing in distributions.
struct Naming {
  void* handle;
  std::string prefix, suffix;

  void* blas(const char* name) const { return ::dlsym(handle, (prefix + "cblas_" + name + suffix).c_str()); }
  void* lapack(const char* name) const { return ::dlsym(handle, (prefix + name + "_" + suffix).c_str()); }
};

bool read_routines(const Naming& naming, OpenBlas& out) {
  static constexpr const char* kBlas[][4] = {{"sgemm", "sgemv", "sdot", "sdot"},
                                             {"dgemm", "dgemv", "ddot", "ddot"},
                                             {"cgemm", "cgemv", "cdotu_sub", "cdotc_sub"},
                                             {"zgemm", "zgemv", "zdotu_sub", "zdotc_sub"}};
  for (int i = 0; i < 4; ++i) {
    BlasRoutines& of_one = out.blas[i];
    const auto& names = kBlas[i];
    of_one = {naming.blas(names[0]), naming.blas(names[1]), naming.blas(names[2]), naming.blas(names[3])};
    for (const void* const routine : {of_one.gemm, of_one.gemv, of_one.dot, of_one.conjugate_dot})
      if (routine == nullptr) return false;
  }
  static constexpr const char* kLapack[][9] = {
      {"dgetrf", "dgesv", "dpotrf", "dsyevd", "dgeev", "dgelsd", "dgesdd", "dgeqrf", "dorgqr"},
      {"zgetrf", "zgesv", "zpotrf", "zheevd", "zgeev", "zgelsd", "zgesdd", "zgeqrf", "zungqr"}};
  bool all = true;
  const auto lapack = [&](const char* name) {
    void* const found = naming.lapack(name);
    all &= found != nullptr;
    return found;
  };
  for (LapackRoutines* r : {&out.of_double, &out.of_complex}) {
    const auto& names = kLapack[r == &out.of_complex];
    *r = {lapack(names[0]), lapack(names[1]), lapack(names[2]), lapack(names[3]), lapack(names[4]),
          lapack(names[5]), lapack(names[6]), lapack(names[7]), lapack(names[8])};
  }
  if (!all) out.of_double = out.of_complex = {};
  return true;
}

bool open_library(const std::string& path, OpenBlas& found) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const bool names_width = path.find("64", path.rfind('/') + 1) != std::string::npos;
  for (const char* prefix : {"scipy_", ""})
    for (const char* suffix : {"64_", ""}) {
      if (*suffix == '\0' && names_width) continue;  // integers of which width cannot be told
      found.wide = *suffix != '\0';
      if (read_routines({handle, prefix, suffix}, found)) return true;  // the handle is kept: the library stays
    }
  ::dlclose(handle);
  return false;
}

struct Loaded {
  unsigned long long loads;  // how many libraries the process has loaded so far
  std::string paths[8];
  int count;
};

int read_loads(dl_phdr_info* info, std::size_t, void* loads) {
  *static_cast<unsigned long long*>(loads) = info->dlpi_adds;
  return 1;
}
int collect(dl_phdr_info* info, std::size_t, void* out) {  // no dlopen() in here: the loader holds a lock
  auto& loaded = *static_cast<Loaded*>(out);
  loaded.loads = info->dlpi_adds;
  const char* const slash = info->dlpi_name != nullptr ? std::strrchr(info->dlpi_name, '/') : nullptr;
  if (slash != nullptr && std::strstr(slash, "openblas") != nullptr && loaded.count < 8)
    loaded.paths[loaded.count++] = info->dlpi_name;
  return 0;
}

// The first that the process has loaded; looked for again when it has loaded more.
const OpenBlas* find_loaded() {
  static std::atomic<bool> found{false};
  static std::atomic<unsigned long long> looked_at{0};
  static std::mutex mutex;
  static OpenBlas library;
  if (found.load(std::memory_order_acquire)) return &library;
  unsigned long long loads = 0;
  ::dl_iterate_phdr(read_loads, &loads);
  if (looked_at.load(std::memory_order_relaxed) == loads) return nullptr;
  const std::lock_guard lock(mutex);
  if (found.load(std::memory_order_acquire)) return &library;
  Loaded loaded{};
  ::dl_iterate_phdr(collect, &loaded);
  for (int i = 0; i < loaded.count; ++i)
    if (open_library(loaded.paths[i], library)) {
      found.store(true, std::memory_order_release);
      return &library;
    }
  looked_at.store(loaded.loads, std::memory_order_relaxed);
  return nullptr;
}

bool is_wanted() noexcept {
  static const char* const set = std::getenv("DLBRIDGE_BLAS");
  static const bool wanted = set == nullptr || std::strcmp(set, "0") != 0;
  return wanted;
}

}  // namespace

const OpenBlas* find_openblas() noexcept {
  if (!is_wanted()) return nullptr;
  try {
    return find_loaded();
  } catch (...) {  // no memory for a path: the loops of our own need little
    return nullptr;
  }
}

}  // namespace dlbridge::nd::host_kernels
