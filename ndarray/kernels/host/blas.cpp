#include "ndarray/kernels/host/blas.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>

#include "ndarray/kernels/functors/matmul_types.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kBlasFrom = 4096;  // multiplications: below, a call and its checks cost more than they save

enum Layout { kRowMajor = 101 };
enum Transpose { kAsIs = 111, kTransposed = 112 };
constexpr DTypeSet kBlasSet =
    bit(DType::kFloat32) | bit(DType::kFloat64) | bit(DType::kComplex64) | bit(DType::kComplex128);

// --- the library ----------------------------------------------------------------------------------------------------

struct Symbols {  // of one dtype
  void *gemm, *gemv, *dot;
};
struct Library {
  bool wide;  // its integers have 64 bits
  Symbols of_float, of_double, of_complex_float, of_complex_double;
};

// OpenBLAS as it is in wheels (scipy_ before the names, 64_ behind them where integers are wide) and in distributions.
bool open_library(const std::string& path, Library& found) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const bool names_width = path.find("64", path.rfind('/') + 1) != std::string::npos;
  for (const char* prefix : {"scipy_cblas_", "cblas_"})
    for (const char* suffix : {"64_", ""}) {
      if (*suffix == '\0' && names_width) continue;  // integers of which width cannot be told
      const auto symbol = [&](const char* name) {
        return ::dlsym(handle, (prefix + std::string(name) + suffix).c_str());
      };
      found = {*suffix != '\0',
               {symbol("sgemm"), symbol("sgemv"), symbol("sdot")},
               {symbol("dgemm"), symbol("dgemv"), symbol("ddot")},
               {symbol("cgemm"), symbol("cgemv"), symbol("cdotu_sub")},
               {symbol("zgemm"), symbol("zgemv"), symbol("zdotu_sub")}};
      bool all = true;
      for (const Symbols& s : {found.of_float, found.of_double, found.of_complex_float, found.of_complex_double})
        all = all && s.gemm != nullptr && s.gemv != nullptr && s.dot != nullptr;
      if (all) return true;  // the handle is kept: the library stays
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
const Library* find_library() {
  static std::atomic<bool> found{false};
  static std::atomic<unsigned long long> looked_at{0};
  static std::mutex mutex;
  static Library library;
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

// --- the calls ------------------------------------------------------------------------------------------------------

// A matrix as BLAS takes it: rows or columns side by side, `leading` elements apart.
struct BlasMatrix {
  Transpose transpose;
  std::int64_t leading;
};

bool as_blas_matrix(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column, BlasMatrix& out) {
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
    out = {kAsIs, rows == 1 ? columns : row};
    return true;
  }
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
    out = {kTransposed, columns == 1 ? rows : column};
    return true;
  }
  return false;
}

template <class T>
const Symbols& symbols_of(const Library& library) {
  if constexpr (std::is_same_v<T, float>) return library.of_float;
  else if constexpr (std::is_same_v<T, double>) return library.of_double;
  else if constexpr (std::is_same_v<T, complex<float>>) return library.of_complex_float;
  else return library.of_complex_double;
}

// alpha and beta: real ones by value, complex ones by address.
template <class T>
using ScaleArg = std::conditional_t<is_complex_v<T>, const T*, T>;

template <class T, class Int>
class Blas {
 public:
  Blas(const Library& library, const MatmulArgs& args) : symbols_(symbols_of<T>(library)), args_(args) {}

  bool run() const {
    for (const std::int64_t n : {args_.m, args_.n, args_.k, args_.a_row, args_.a_column, args_.b_row, args_.b_column})
      if (n > std::numeric_limits<Int>::max() || n < 0) return false;
    MatrixVector vector;
    return as_matrix_vector(args_, vector) ? run_vector(vector) : run_matrices();
  }

 private:
  static ScaleArg<T> scale(const T& value) {
    if constexpr (is_complex_v<T>) return &value;
    else return value;
  }
  static const T* part(const void* base, std::int64_t batch, std::int64_t stride) {
    return static_cast<const T*>(base) + batch * stride;
  }
  static T* part(void* base, std::int64_t batch, std::int64_t stride) { return static_cast<T*>(base) + batch * stride; }

  bool run_matrices() const {
    using Gemm =
        void (*)(int, int, int, Int, Int, Int, ScaleArg<T>, const T*, Int, const T*, Int, ScaleArg<T>, T*, Int);
    BlasMatrix a, b;
    if (!as_blas_matrix(args_.m, args_.k, args_.a_row, args_.a_column, a)) return false;
    if (!as_blas_matrix(args_.k, args_.n, args_.b_row, args_.b_column, b)) return false;
    const auto gemm = reinterpret_cast<Gemm>(symbols_.gemm);
    for (std::int64_t i = 0; i < args_.batch; ++i)
      gemm(kRowMajor, a.transpose, b.transpose, Int(args_.m), Int(args_.n), Int(args_.k), scale(kOne),
           part(args_.a, i, args_.a_batch), Int(a.leading), part(args_.b, i, args_.b_batch), Int(b.leading),
           scale(kZero), part(args_.c, i, args_.c_batch), Int(args_.n));
    return true;
  }

  bool run_vector(const MatrixVector& p) const {
    if (p.x_stride == 0) return false;
    if (p.rows == 1) return run_dot(p);
    using Gemv = void (*)(int, int, Int, Int, ScaleArg<T>, const T*, Int, const T*, Int, ScaleArg<T>, T*, Int);
    BlasMatrix matrix;
    if (!as_blas_matrix(p.rows, p.k, p.row, p.column, matrix)) return false;
    const bool turned = matrix.transpose == kTransposed;  // what lies in memory has k rows
    const auto gemv = reinterpret_cast<Gemv>(symbols_.gemv);
    for (std::int64_t i = 0; i < p.batch; ++i)
      gemv(kRowMajor, matrix.transpose, Int(turned ? p.k : p.rows), Int(turned ? p.rows : p.k), scale(kOne),
           part(p.matrix, i, p.matrix_batch), Int(matrix.leading), part(p.x, i, p.x_batch), Int(p.x_stride),
           scale(kZero), part(p.y, i, p.y_batch), Int(1));
    return true;
  }

  bool run_dot(const MatrixVector& p) const {
    if (p.column == 0) return false;
    for (std::int64_t i = 0; i < p.batch; ++i) {
      const T *const row = part(p.matrix, i, p.matrix_batch), *const x = part(p.x, i, p.x_batch);
      T* const y = part(p.y, i, p.y_batch);
      if constexpr (is_complex_v<T>) {
        using Dot = void (*)(Int, const T*, Int, const T*, Int, T*);
        reinterpret_cast<Dot>(symbols_.dot)(Int(p.k), row, Int(p.column), x, Int(p.x_stride), y);
      } else {
        using Dot = T (*)(Int, const T*, Int, const T*, Int);
        *y = reinterpret_cast<Dot>(symbols_.dot)(Int(p.k), row, Int(p.column), x, Int(p.x_stride));
      }
    }
    return true;
  }

  static constexpr T kOne = T(1), kZero = T(0);
  const Symbols& symbols_;
  const MatmulArgs& args_;
};

}  // namespace

bool multiply_by_blas(const MatmulArgs& args) noexcept {
  if (!contains(kBlasSet, args.dtype) || args.m * args.n < 1 || args.k < 1) return false;
  if (args.m * args.n < kBlasFrom && args.m * args.n * args.k < kBlasFrom) return false;
  if (!is_wanted()) return false;
  const Library* library = nullptr;
  try {
    library = find_library();
  } catch (...) {  // no memory for a path: the loops of our own need little
  }
  if (library == nullptr) return false;
  return visit_dtype<kBlasSet>(
      args.dtype,
      [&]<class T>() {
        return library->wide ? Blas<T, std::int64_t>(*library, args).run()
                             : Blas<T, std::int32_t>(*library, args).run();
      },
      false);
}

}  // namespace dlbridge::nd::host_kernels
