// Matrix products on the host: blocks packed for the cache, a register tile as the kernel. One thread.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/matmul_types.h"
#include "ndarray/kernels/host/blas.h"

#if defined(__clang__)
#define DLBRIDGE_ND_UNROLL _Pragma("unroll")
#else
#define DLBRIDGE_ND_UNROLL _Pragma("GCC unroll 8")
#endif

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kRowBlock = 72;      // a multiple of every kernel's rows
constexpr std::int64_t kColumnBlock = 512;  // of every kernel's columns
constexpr std::int64_t kDepthBlock = 256;

// --- the register tile ----------------------------------------------------------------------------------------------

// tile[rows][columns] += a[depth][rows] * b[depth][columns], packed. Complex: the two parts of a side by side, in b and
// in the tile as a plane each (b[depth][2][columns], tile[rows][2][columns]).
template <class R>
struct TileKernel {
  int rows, columns;
  void (*add)(const R* a, const R* b, std::int64_t depth, R* tile);
};

template <class R, int kBytes, int kRows>
[[gnu::always_inline]] inline void add_real(const R* a, const R* b, std::int64_t depth, R* tile) {
  typedef R Vector __attribute__((vector_size(kBytes)));
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(R));
  Vector sum[kRows][2];
  std::memcpy(sum, tile, sizeof sum);
  for (std::int64_t k = 0; k < depth; ++k, a += kRows, b += 2 * kLanes) {
    Vector b0, b1;
    std::memcpy(&b0, b, sizeof b0);
    std::memcpy(&b1, b + kLanes, sizeof b1);
    DLBRIDGE_ND_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] += a[r] * b0;
      sum[r][1] += a[r] * b1;
    }
  }
  std::memcpy(tile, sum, sizeof sum);
}

template <class R, int kBytes, int kRows>
[[gnu::always_inline]] inline void add_complex(const R* a, const R* b, std::int64_t depth, R* tile) {
  typedef R Vector __attribute__((vector_size(kBytes)));
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(R));
  Vector sum[kRows][2];
  std::memcpy(sum, tile, sizeof sum);
  for (std::int64_t k = 0; k < depth; ++k, a += 2 * kRows, b += 2 * kLanes) {
    Vector real, imag;
    std::memcpy(&real, b, sizeof real);
    std::memcpy(&imag, b + kLanes, sizeof imag);
    DLBRIDGE_ND_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] = sum[r][0] + a[2 * r] * real - a[2 * r + 1] * imag;
      sum[r][1] = sum[r][1] + a[2 * r] * imag + a[2 * r + 1] * real;
    }
  }
  std::memcpy(tile, sum, sizeof sum);
}

template <class S>
struct Kernels {  // S: the type of a sum
  using R = real_t<S>;
  static constexpr int kParts = is_complex_v<S> ? 2 : 1;
  static constexpr int kBase = 16 / static_cast<int>(sizeof(R)), kWide = 32 / static_cast<int>(sizeof(R));
  template <int kBytes, int kRows>
  [[gnu::always_inline]] static inline void add(const R* a, const R* b, std::int64_t depth, R* tile) {
    if constexpr (kParts == 2) add_complex<R, kBytes, kRows>(a, b, depth, tile);
    else add_real<R, kBytes, kRows>(a, b, depth, tile);
  }
  static void add_base(const R* a, const R* b, std::int64_t depth, R* tile) { add<16, 4>(a, b, depth, tile); }
#if defined(__x86_64__)
  [[gnu::target("avx2,fma")]] static void add_avx2(const R* a, const R* b, std::int64_t depth, R* tile) {
    add<32, 6>(a, b, depth, tile);
  }
#endif
  static TileKernel<R> choose() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {6, kWide * 2 / kParts, add_avx2};
#endif
    return {4, kBase * 2 / kParts, add_base};
  }
};

// --- packing --------------------------------------------------------------------------------------------------------

template <class T>
struct Matrix {
  const T* data;
  std::int64_t row, column;  // strides in elements
  const T* at(std::int64_t i, std::int64_t j) const { return data + i * row + j * column; }
};

template <class S>
void put(real_t<S>* out, std::int64_t plane, S value) {
  if constexpr (is_complex_v<S>) {
    out[0] = value.real();
    out[plane] = value.imag();
  } else {
    *out = value;
  }
}

// Panels of `width` rows of `m` (its columns when the caller transposes), each as [depth][parts or planes][width]; the
// last panel is filled up with zeros. step: between the lanes of a panel; plane: between the parts of an element.
template <class T>
void pack(Matrix<T> m, std::int64_t rows, std::int64_t depth, std::int64_t width, bool planes,
          real_t<product_sum_t<T>>* out) {
  using S = product_sum_t<T>;
  constexpr std::int64_t kParts = Kernels<S>::kParts;
  const std::int64_t plane = planes ? width : 1, step = planes ? 1 : kParts;
  for (std::int64_t first = 0; first < rows; first += width) {
    const std::int64_t here = std::min(width, rows - first);
    if (here < width) std::fill(out, out + depth * width * kParts, real_t<S>(0));
    if (m.column == 1) {  // along memory
      for (std::int64_t i = 0; i < here; ++i)
        for (std::int64_t k = 0; k < depth; ++k)
          put<S>(out + k * width * kParts + i * step, plane, factor(m.at(first + i, k)));
    } else {
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t i = 0; i < here; ++i)
          put<S>(out + k * width * kParts + i * step, plane, factor(m.at(first + i, k)));
    }
    out += depth * width * kParts;
  }
}

// --- blocks ---------------------------------------------------------------------------------------------------------

template <class T>
class Product {
 public:
  using S = product_sum_t<T>;
  using R = real_t<S>;

  explicit Product(const MatmulArgs& args) : args_(args), kernel_(Kernels<S>::choose()) {}

  int run() {
    const std::int64_t rows = round_up(std::min(args_.m, kRowBlock), kernel_.rows);
    const std::int64_t columns = round_up(std::min(args_.n, kColumnBlock), kernel_.columns);
    const std::int64_t depth = std::min(args_.k, kDepthBlock);
    const std::int64_t total = (rows * depth + columns * depth + rows * columns) * kParts;
    const std::unique_ptr<R[]> memory(new (std::nothrow) R[static_cast<std::size_t>(total)]);
    if (memory == nullptr) return kErrorMemory;
    packed_a_ = memory.get();
    packed_b_ = packed_a_ + rows * depth * kParts;
    tile_ = packed_b_ + columns * depth * kParts;
    for (std::int64_t batch = 0; batch < args_.batch; ++batch) {
      a_ = {static_cast<const T*>(args_.a) + batch * args_.a_batch, args_.a_row, args_.a_column};
      b_ = {static_cast<const T*>(args_.b) + batch * args_.b_batch, args_.b_row, args_.b_column};
      c_ = static_cast<T*>(args_.c) + batch * args_.c_batch;
      for (std::int64_t j = 0; j < args_.n; j += kColumnBlock)
        for (std::int64_t i = 0; i < args_.m; i += kRowBlock)
          block(i, std::min(kRowBlock, args_.m - i), j, std::min(kColumnBlock, args_.n - j));
    }
    return 0;
  }

 private:
  static constexpr std::int64_t kParts = Kernels<S>::kParts;
  static std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

  void block(std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t columns) {
    const std::int64_t tile_size = std::int64_t{kernel_.rows} * kernel_.columns * kParts;
    const std::int64_t down = round_up(rows, kernel_.rows) / kernel_.rows;
    const std::int64_t across = round_up(columns, kernel_.columns) / kernel_.columns;
    std::fill(tile_, tile_ + down * across * tile_size, R(0));
    for (std::int64_t k0 = 0; k0 < args_.k; k0 += kDepthBlock) {
      const std::int64_t depth = std::min(kDepthBlock, args_.k - k0);
      pack<T>({a_.at(i0, k0), a_.row, a_.column}, rows, depth, kernel_.rows, false, packed_a_);
      pack<T>({b_.at(k0, j0), b_.column, b_.row}, columns, depth, kernel_.columns, true, packed_b_);
      for (std::int64_t j = 0; j < across; ++j)
        for (std::int64_t i = 0; i < down; ++i)
          kernel_.add(packed_a_ + i * kernel_.rows * depth * kParts, packed_b_ + j * kernel_.columns * depth * kParts,
                      depth, tile_ + (i * across + j) * tile_size);
    }
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const R* tile = tile_ + (i / kernel_.rows * across + j / kernel_.columns) * tile_size;
        const R* sum = tile + i % kernel_.rows * kernel_.columns * kParts + j % kernel_.columns;
        T* out = c_ + (i0 + i) * args_.n + j0 + j;
        if constexpr (kParts == 2) *out = T(sum[0], sum[kernel_.columns]);
        else *out = cast<T>(*sum);
      }
  }

  const MatmulArgs& args_;
  TileKernel<R> kernel_;
  Matrix<T> a_{}, b_{};
  T* c_ = nullptr;
  R *packed_a_ = nullptr, *packed_b_ = nullptr, *tile_ = nullptr;
};

// --- matrix and vector ----------------------------------------------------------------------------------------------

constexpr int kLanes = 16;  // sums kept side by side: they vectorise, and their errors stay small

// One row at a time along k.
template <class T>
product_sum_t<T> dot(const T* row, std::int64_t stride, const product_sum_t<T>* x, std::int64_t k) {
  using S = product_sum_t<T>;
  S lanes[kLanes] = {};
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= k; i += kLanes)
      for (int l = 0; l < kLanes; ++l) lanes[l] = multiply_add(lanes[l], factor(row + i + l), x[i + l]);
  }
  for (; i < k; ++i) lanes[i % kLanes] = multiply_add(lanes[i % kLanes], factor(row + i * stride), x[i]);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lanes[l] = lanes[l] + lanes[l + width];
  return lanes[0];
}

// Rows kWidth at a time, column by column, for a matrix whose columns are dense. Returns the rows done.
template <int kWidth, class T>
std::int64_t by_columns(const T* matrix, std::int64_t rows, std::int64_t column, const product_sum_t<T>* x,
                        std::int64_t k, T* y) {
  std::int64_t row = 0;
  for (; row + kWidth <= rows; row += kWidth) {
    product_sum_t<T> sums[kWidth] = {};
    const T* at = matrix + row;
    for (std::int64_t i = 0; i < k; ++i, at += column)
      for (int l = 0; l < kWidth; ++l) sums[l] = multiply_add(sums[l], factor(at + l), x[i]);
    for (int l = 0; l < kWidth; ++l) y[row + l] = cast<T>(sums[l]);
  }
  return row;
}

template <class T>
int matrix_vector(const MatrixVector& p) {
  using S = product_sum_t<T>;
  const std::unique_ptr<S[]> x(new (std::nothrow) S[static_cast<std::size_t>(p.k)]);
  if (x == nullptr) return kErrorMemory;
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const T* vector = static_cast<const T*>(p.x) + batch * p.x_batch;
    const T* matrix = static_cast<const T*>(p.matrix) + batch * p.matrix_batch;
    T* y = static_cast<T*>(p.y) + batch * p.y_batch;
    if (batch == 0 || p.x_batch != 0)
      for (std::int64_t i = 0; i < p.k; ++i) x[static_cast<std::size_t>(i)] = factor(vector + i * p.x_stride);
    std::int64_t row = 0;
    if (p.row == 1 && p.column != 1) {
      row = by_columns<256>(matrix, p.rows, p.column, x.get(), p.k, y);
      row += by_columns<kLanes>(matrix + row, p.rows - row, p.column, x.get(), p.k, y + row);
    }
    for (; row < p.rows; ++row) y[row] = cast<T>(dot(matrix + row * p.row, p.column, x.get(), p.k));
  }
  return 0;
}

}  // namespace

int matmul(const MatmulArgs& args) {
  if (multiply_by_blas(args)) return 0;
  MatrixVector vector;
  if (as_matrix_vector(args, vector))
    return visit_product(args.dtype, [&]<class T>() { return matrix_vector<T>(vector); });
  return visit_product(args.dtype, [&]<class T>() { return Product<T>(args).run(); });
}

}  // namespace dlbridge::nd::host_kernels
