#include "ndarray/kernels/host/blas.h"

#include <limits>

#include "ndarray/kernels/functors/matmul_types.h"
#include "ndarray/kernels/host/openblas.h"

namespace dlbridge::nd::host_kernels {
namespace {

enum Layout { kRowMajor = 101 };
enum Transpose { kAsIs = 111, kTransposed = 112 };

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

// alpha and beta: real ones by value, complex ones by address.
template <class T>
using ScaleArg = std::conditional_t<is_complex_v<T>, const T*, T>;

template <class T, class Int>
class Blas {
 public:
  Blas(const OpenBlas& library, const MatmulArgs& args) : routines_(library.of<T>()), args_(args) {}

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
    const auto gemm = reinterpret_cast<Gemm>(routines_.gemm);
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
    const auto gemv = reinterpret_cast<Gemv>(routines_.gemv);
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
        const auto dot = reinterpret_cast<Dot>(args_.conjugates ? routines_.conjugate_dot : routines_.dot);
        dot(Int(p.k), row, Int(p.column), x, Int(p.x_stride), y);
      } else {
        using Dot = T (*)(Int, const T*, Int, const T*, Int);
        *y = reinterpret_cast<Dot>(routines_.dot)(Int(p.k), row, Int(p.column), x, Int(p.x_stride));
      }
    }
    return true;
  }

  static constexpr T kOne = T(1), kZero = T(0);
  const BlasRoutines& routines_;
  const MatmulArgs& args_;
};

}  // namespace

bool multiply_by_blas(const MatmulArgs& args) noexcept {
  if (!contains(kOpenBlasSet, args.dtype) || args.m * args.n < 1 || args.k < 1) return false;
  const bool is_dot = args.m == 1 && args.n == 1;
  const bool has_vector = args.batch == 1 && (args.m == 1 || args.n == 1);
  const std::int64_t all = is_dot ? args.k : args.batch * args.m * args.n * args.k;
  if (all < (is_dot ? kBlasDotFrom : has_vector ? kBlasVectorFrom : kBlasFrom)) return false;
  if (args.conjugates && !is_dot) return false;
  const OpenBlas* library = find_openblas();
  if (library == nullptr) return false;
  return visit_dtype<kOpenBlasSet>(
      args.dtype,
      [&]<class T>() {
        return library->wide ? Blas<T, std::int64_t>(*library, args).run()
                             : Blas<T, std::int32_t>(*library, args).run();
      },
      false);
}

}  // namespace dlbridge::nd::host_kernels
