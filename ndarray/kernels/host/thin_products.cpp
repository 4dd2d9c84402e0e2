#include "ndarray/kernels/host/thin_products.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "ndarray/kernels/functors/matmul_types.h"
#include "ndarray/kernels/functors/reduction.h"
#include "ndarray/kernels/host/blas.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/openblas.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kFew = 8;        // columns, and terms
constexpr std::int64_t kFewBools = 16;  // of the small matrix: more are decided before all are read
// Multiplications, from which on a call of BLAS is faster.
constexpr std::int64_t kFewFloats = 64;
constexpr std::int64_t kFewComplex = 512;

// Bools are bytes of any value, of which the true ones are counted.
using Byte = unsigned char;
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, Byte, T>;
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, bool>, std::uint32_t, product_sum_t<T>>;

template <class T>
Sum<T> term(const Element<T>* p) noexcept {
  if constexpr (std::is_same_v<T, bool>) return *p != 0;
  else return factor(p);
}
template <class T>
Element<T> result(Sum<T> sum) noexcept {
  if constexpr (std::is_same_v<T, bool>) return sum != 0;
  else return cast<T>(sum);
}

// The matrices of one product: c[rows, columns] = a[rows, k] * b[k, columns], of which b is small. Strides in elements.
template <class T>
struct Thin {
  std::int64_t rows, columns, k;
  const Element<T>* a;
  std::int64_t a_row, a_column;
  const Element<T>* b;
  std::int64_t b_row, b_column;
  Element<T>* c;
  std::int64_t c_row, c_column;
};

template <class T>
Thin<T> matrices(const MatmulArgs& p, std::int64_t batch) noexcept {
  const auto* const a = static_cast<const Element<T>*>(p.a) + batch * p.a_batch;
  const auto* const b = static_cast<const Element<T>*>(p.b) + batch * p.b_batch;
  auto* const c = static_cast<Element<T>*>(p.c) + batch * p.c_batch;
  if (p.n <= p.m) return {p.m, p.n, p.k, a, p.a_row, p.a_column, b, p.b_row, p.b_column, c, p.n, 1};
  return {p.n, p.m, p.k, b, p.b_column, p.b_row, a, p.a_column, p.a_row, c, 1, p.n};
}

template <int kColumns, class T>
void multiply_rows(const Thin<T>& p, const Sum<T>* b) noexcept {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    Sum<T> sums[kColumns] = {};
    for (std::int64_t k = 0; k < p.k; ++k) {
      const Sum<T> value = term<T>(p.a + i * p.a_row + k * p.a_column);
      DLBRIDGE_ND_UNROLL
      for (int j = 0; j < kColumns; ++j) sums[j] = multiply_add(sums[j], value, b[k * kColumns + j]);
    }
    DLBRIDGE_ND_UNROLL
    for (int j = 0; j < kColumns; ++j) p.c[i * p.c_row + j * p.c_column] = result<T>(sums[j]);
  }
}

// Rows of so few elements, one behind the other, that the compiler makes vectors of several.
template <int k, class T>
void multiply_points(const Thin<T>& p, const Sum<T>* b) noexcept {
  const Element<T>* const a = p.a;
  Element<T>* const c = p.c;
  Sum<T> factors[k];
  std::copy_n(b, k, factors);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::int64_t row = 0; row < p.rows; ++row) {
    Sum<T> sum{};
    DLBRIDGE_ND_UNROLL
    for (int i = 0; i < k; ++i) sum = multiply_add(sum, term<T>(a + row * k + i), factors[i]);
    c[row] = result<T>(sum);
  }
}
template <class T>
bool are_points(const Thin<T>& p) noexcept {
  return p.columns == 1 && p.k >= 2 && p.k <= 4 && p.a_column == 1 && p.a_row == p.k && p.c_row == 1;
}

template <class T, int... columns>
void multiply_all(const MatmulArgs& args, std::integer_sequence<int, columns...>) noexcept {
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    const Thin<T> p = matrices<T>(args, batch);
    Sum<T> b[kFew * kFew];
    for (std::int64_t k = 0; k < p.k; ++k)
      for (std::int64_t j = 0; j < p.columns; ++j) b[k * p.columns + j] = term<T>(p.b + k * p.b_row + j * p.b_column);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      if (are_points(p)) {
        p.k == 2 ? multiply_points<2>(p, b) : p.k == 3 ? multiply_points<3>(p, b) : multiply_points<4>(p, b);
        continue;
      }
    }
    (void)((p.columns == columns + 1 && (multiply_rows<columns + 1, T>(p, b), true)) || ...);
  }
}

using Columns = std::make_integer_sequence<int, kFew>;
template <class T>
DLBRIDGE_ND_CLONES void multiply_reals(const MatmulArgs& args) noexcept {
  multiply_all<T>(args, Columns{});
}
template <class T>
DLBRIDGE_ND_CLONES_WITHOUT_FMA void multiply_complex(const MatmulArgs& args) noexcept {
  multiply_all<T>(args, Columns{});
}

// --- vectors --------------------------------------------------------------------------------------------------------

constexpr int kLanes = 16;             // sums kept side by side: they vectorise, and their errors stay small
constexpr std::int64_t kFewDots = 16;  // sums of many terms, each of which is made for itself

// One sum along k; X: the type of the row, or of its products.
template <class T, class X>
product_sum_t<T> dot(const T* row, std::int64_t stride, const X* x, std::int64_t x_stride, std::int64_t k) {
  using S = product_sum_t<T>;
  if (k < kLanes) {  // a sum alone: to fold the lanes would take longer
    S sum{};
    for (std::int64_t i = 0; i < k; ++i) sum = multiply_add(sum, factor(row + i * stride), factor(x + i * x_stride));
    return sum;
  }
  S lanes[kLanes] = {};
  std::int64_t i = 0;
  const auto add = [&](std::int64_t row_step, std::int64_t x_step) {
    for (; i + kLanes <= k; i += kLanes)
      for (int l = 0; l < kLanes; ++l)
        lanes[l] = multiply_add(lanes[l], factor(row + (i + l) * row_step), factor(x + (i + l) * x_step));
  };
  if (stride == 1 && x_stride == 1) add(1, 1);
  else add(stride, x_stride);
  for (; i < k; ++i)
    lanes[i % kLanes] = multiply_add(lanes[i % kLanes], factor(row + i * stride), factor(x + i * x_stride));
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lanes[l] = lanes[l] + lanes[l + width];
  return lanes[0];
}

// Rows kWidth at a time, column by column, for a matrix whose columns are dense. Of few rows several columns are added
// side by side: no sum waits for the one before. Returns the rows done.
template <int kWidth, class T>
std::int64_t by_columns(const T* matrix, std::int64_t rows, std::int64_t column, const product_sum_t<T>* x,
                        std::int64_t k, T* y) {
  constexpr int kChains = kWidth < kLanes ? 4 : 1;
  std::int64_t row = 0;
  for (; row + kWidth <= rows; row += kWidth) {
    product_sum_t<T> sums[kChains][kWidth] = {};
    const auto add = [&](int chain, std::int64_t i) {
      const T* const at = matrix + row + i * column;
      for (int l = 0; l < kWidth; ++l) sums[chain][l] = multiply_add(sums[chain][l], factor(at + l), x[i]);
    };
    std::int64_t i = 0;
    for (; i + kChains <= k; i += kChains) {
      DLBRIDGE_ND_UNROLL
      for (int chain = 0; chain < kChains; ++chain) add(chain, i + chain);
    }
    for (; i < k; ++i) add(0, i);
    for (int l = 0; l < kWidth; ++l) {
      for (int chain = 1; chain < kChains; ++chain) sums[0][l] = sums[0][l] + sums[chain][l];
      y[row + l] = cast<T>(sums[0][l]);
    }
  }
  return row;
}

// Rows whose sums are too short for lanes, several at a time: none waits for another, and all have registers. Returns
// the rows done.
template <class T>
std::int64_t by_rows(const T* matrix, std::int64_t rows, std::int64_t row_stride, std::int64_t column,
                     const product_sum_t<T>* x, std::int64_t k, T* y) {
  constexpr int kSide = is_complex_v<T> ? 4 : 8;
  std::int64_t row = 0;
  for (; row + kSide <= rows; row += kSide) {
    product_sum_t<T> sums[kSide] = {};
    const T* const at = matrix + row * row_stride;
    for (std::int64_t i = 0; i < k; ++i) {
      DLBRIDGE_ND_UNROLL
      for (int r = 0; r < kSide; ++r) sums[r] = multiply_add(sums[r], factor(at + r * row_stride + i * column), x[i]);
    }
    for (int r = 0; r < kSide; ++r) y[row + r] = cast<T>(sums[r]);
  }
  return row;
}

template <class T>
void multiply_matrix(const MatrixVector& p, product_sum_t<T>* x) {
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const T* vector = static_cast<const T*>(p.x) + batch * p.x_batch;
    const T* matrix = static_cast<const T*>(p.matrix) + batch * p.matrix_batch;
    T* y = static_cast<T*>(p.y) + batch * p.y_batch;
    if (batch == 0 || p.x_batch != 0)
      for (std::int64_t i = 0; i < p.k; ++i) x[i] = factor(vector + i * p.x_stride);
    std::int64_t row = 0;
    if (p.row == 1 && (p.column != 1 || p.rows > p.k)) {  // both 1: rows that overlap, as a convolution's
      row = by_columns<256>(matrix, p.rows, p.column, x, p.k, y);
      row += by_columns<kLanes>(matrix + row, p.rows - row, p.column, x, p.k, y + row);
      row += by_columns<kLanes / 2>(matrix + row, p.rows - row, p.column, x, p.k, y + row);
      row += by_columns<kLanes / 4>(matrix + row, p.rows - row, p.column, x, p.k, y + row);
      row += by_columns<kLanes / 8>(matrix + row, p.rows - row, p.column, x, p.k, y + row);
      row += by_columns<kLanes / 16>(matrix + row, p.rows - row, p.column, x, p.k, y + row);
    }
    if (p.k < kLanes) row += by_rows(matrix + row * p.row, p.rows - row, p.row, p.column, x, p.k, y + row);
    for (; row < p.rows; ++row) y[row] = cast<T>(dot(matrix + row * p.row, p.column, x, 1, p.k));
  }
}

template <class T>
void multiply_dots(const MatmulArgs& p) {
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const T* const a = static_cast<const T*>(p.a) + batch * p.a_batch;
    const T* const b = static_cast<const T*>(p.b) + batch * p.b_batch;
    T* c = static_cast<T*>(p.c) + batch * p.c_batch;
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j)
        *c++ = cast<T>(dot(a + i * p.a_row, p.a_column, b + j * p.b_column, p.b_row, p.k));
  }
}

bool is_of_dots(const MatmulArgs& p) noexcept {
  return p.m * p.n == 1 || (p.m * p.n <= kFewDots && p.a_column == 1 && p.b_row == 1);
}
// Few terms: each row of the product is a sum of a few rows of b, in memory.
bool is_of_rows(const MatmulArgs& p) noexcept { return p.k <= kFew && p.n >= kLanes && p.b_column == 1; }

// x: room for k sums, unless the product is one of dots.
template <class T>
void multiply_with(const MatmulArgs& p, product_sum_t<T>* x) {
  if (is_of_dots(p)) return multiply_dots<T>(p);
  MatrixVector product;
  const bool is_whole = as_matrix_vector(p, product);
  if (!is_whole) product = {p.m, p.n, p.k, p.b, 0, 1, p.b_row, p.a, p.a_row, p.a_column, p.c, p.n};
  for (std::int64_t i = 0; i < p.batch; ++i) {
    multiply_matrix<T>(product, x);  // one call, for it becomes part of every clone
    if (is_whole) return;
    product.matrix = static_cast<const T*>(product.matrix) + p.b_batch;
    product.x = static_cast<const T*>(product.x) + p.a_batch;
    product.y = static_cast<T*>(product.y) + p.c_batch;
  }
}

template <class T>
DLBRIDGE_ND_CLONES void multiply_reals_with(const MatmulArgs& args, product_sum_t<T>* x) {
  multiply_with<T>(args, x);
}
template <class T>
DLBRIDGE_ND_CLONES_WITHOUT_FMA void multiply_complex_with(const MatmulArgs& args, product_sum_t<T>* x) {
  multiply_with<T>(args, x);
}

template <class T>
int multiply_vectors_of(const MatmulArgs& args) {
  using S = product_sum_t<T>;
  const std::int64_t room = is_of_dots(args) ? 0 : args.k;
  const std::unique_ptr<S[]> x(new (std::nothrow) S[static_cast<std::size_t>(room)]);
  if (x == nullptr) return kErrorMemory;
  if constexpr (is_complex_v<T>) multiply_complex_with<T>(args, x.get());
  else multiply_reals_with<T>(args, x.get());
  return 0;
}

// Whether loops along the long side, which become vectors, do the product as one with vectors.
bool runs_along(const MatmulArgs& p) noexcept {
  return p.n <= p.m ? p.n == 1 && p.m >= kLanes && p.a_row == 1 : p.n >= kLanes && p.b_column == 1;
}

bool is_thin(const MatmulArgs& p) noexcept {
  if (p.k < 1 || p.k > kFew || std::min(p.m, p.n) > kFew || runs_along(p)) return false;
  if (p.dtype == DType::kBool) return std::min(p.m, p.n) * p.k <= kFewBools;
  if (!contains(kOpenBlasSet, p.dtype) || p.k == 1) return true;
  if (p.batch * p.m * p.n * p.k < kBlasFrom) return true;  // sums so short gain nothing by lanes, nor by tiles
  return p.m != 1 && p.n != 1 && p.m * p.n * p.k < (contains(kComplexSet, p.dtype) ? kFewComplex : kFewFloats);
}

}  // namespace

bool multiply_thin(const MatmulArgs& args) noexcept {
  if (!is_thin(args)) return false;
  return visit_product(args.dtype, [&]<class T>() {
           if constexpr (is_complex_v<T>) multiply_complex<T>(args);
           else multiply_reals<T>(args);
           return 0;
         }) == 0;
}

bool is_of_vectors(const MatmulArgs& args) noexcept {
  MatrixVector vector;
  return is_of_dots(args) || as_matrix_vector(args, vector) || is_of_rows(args);
}

int multiply_vectors(const MatmulArgs& args) {
  return visit_product<kNumericSet>(args.dtype, [&]<class T>() { return multiply_vectors_of<T>(args); });
}

}  // namespace dlbridge::nd::host_kernels
