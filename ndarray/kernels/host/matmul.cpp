// Matrix products on the host: blocks packed for the cache, a register tile as the kernel. One thread.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/matmul_types.h"
#include "ndarray/kernels/functors/reduction.h"
#include "ndarray/kernels/host/blas.h"
#include "ndarray/kernels/host/copy.h"
#include "ndarray/kernels/host/elementwise_loops.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/thin_products.h"

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

// --- bool -----------------------------------------------------------------------------------------------------------

// Of a product of bools (and, or) one pair decides, so that few elements are read where many are true. Any byte that is
// not 0 is true.
using Byte = unsigned char;
constexpr std::int64_t kFirstPairs = 16;
constexpr std::int64_t kWidePairs = 256;

template <std::int64_t kCount>
bool any_pair_of(const Byte* a, const Byte* b) noexcept {
  constexpr std::int64_t kWidth = std::min<std::int64_t>(kCount, 64);
  Byte found[kWidth] = {};
  for (std::int64_t i = 0; i < kCount; i += kWidth)
    for (std::int64_t j = 0; j < kWidth; ++j)
      found[j] = static_cast<Byte>(found[j] | ((a[i + j] != 0) & (b[i + j] != 0)));
  std::uint64_t words[kWidth / 8], any = 0;
  std::memcpy(words, found, sizeof(words));
  for (const std::uint64_t word : words) any |= word;
  return any != 0;
}

bool any_pair(const Byte* a, std::int64_t a_stride, const Byte* b, std::int64_t b_stride, std::int64_t n) noexcept {
  if (a_stride != 1 || b_stride != 1 || n < kFirstPairs) {
    for (; n > 0; --n, a += a_stride, b += b_stride)
      if ((*a != 0) & (*b != 0)) return true;
    return false;
  }
  if (any_pair_of<kFirstPairs>(a, b)) return true;
  std::int64_t i = kFirstPairs;
  for (; i + kWidePairs <= n; i += kWidePairs)
    if (any_pair_of<kWidePairs>(a + i, b + i)) return true;
  for (; i + kFirstPairs <= n; i += kFirstPairs)
    if (any_pair_of<kFirstPairs>(a + i, b + i)) return true;
  return any_pair_of<kFirstPairs>(a + n - kFirstPairs, b + n - kFirstPairs);
}

// Some columns of a row of the product, which is the rows of `b` put together that `a` picks, until all are true.
template <std::int64_t kColumns>
void any_row(const Byte* a, std::int64_t a_stride, const Byte* b, std::int64_t b_row, std::int64_t k,
             Byte* out) noexcept {
  Byte found[kColumns] = {};
  for (std::int64_t first = 0; first < k; first += kFirstPairs) {
    const std::int64_t last = std::min(first + kFirstPairs, k);
    for (std::int64_t i = first; i < last; ++i) {
      const Byte picked = a[i * a_stride] != 0 ? 0xff : 0;
      for (std::int64_t j = 0; j < kColumns; ++j) found[j] = static_cast<Byte>(found[j] | (picked & b[i * b_row + j]));
    }
    Byte all = 1;
    for (std::int64_t j = 0; j < kColumns; ++j) all = static_cast<Byte>(all & (found[j] != 0));
    if (all != 0) break;
  }
  for (std::int64_t j = 0; j < kColumns; ++j) out[j] = found[j] != 0;
}

// A column is the row of the transposed product, where the matrix is read along its columns.
MatmulArgs as_row(MatmulArgs p) noexcept {
  if (p.n != 1 || p.a_row != 1) return p;
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a_batch, p.b_batch);
  std::swap(p.a_row, p.b_column);
  std::swap(p.a_column, p.b_row);
  return p;
}

DLBRIDGE_ND_CLONES void multiply_bools_as_they_lie(const MatmulArgs& p) noexcept {
  for (std::int64_t batch = 0; batch < p.batch; ++batch)
    for (std::int64_t i = 0; i < p.m; ++i) {
      const Byte* const a = static_cast<const Byte*>(p.a) + batch * p.a_batch + i * p.a_row;
      const Byte* const b = static_cast<const Byte*>(p.b) + batch * p.b_batch;
      Byte* const c = static_cast<Byte*>(p.c) + batch * p.c_batch + i * p.n;
      if (p.b_column == 1 && p.n >= kFirstPairs) {  // the last columns may overlap others
        std::int64_t j = 0;
        for (; j + kWidePairs <= p.n; j += kWidePairs) any_row<kWidePairs>(a, p.a_column, b + j, p.b_row, p.k, c + j);
        for (; j < p.n; j += kFirstPairs) {
          const std::int64_t at = std::min(j, p.n - kFirstPairs);
          any_row<kFirstPairs>(a, p.a_column, b + at, p.b_row, p.k, c + at);
        }
      } else {
        for (std::int64_t j = 0; j < p.n; ++j) c[j] = any_pair(a, p.a_column, b + j * p.b_column, p.b_row, p.k);
      }
    }
}

// A matrix that has its elements elsewhere, in C order.
void copy_in_rows(const Byte* from, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns,
                  Byte* to) noexcept {
  KernelLoop loop{};
  loop.ndim = 2;
  loop.shape[0] = columns, loop.shape[1] = rows;
  loop.strides[0][0] = 1, loop.strides[0][1] = columns;
  loop.strides[1][0] = column, loop.strides[1][1] = row;
  loop.data[0] = reinterpret_cast<char*>(to);
  loop.data[1] = reinterpret_cast<char*>(const_cast<Byte*>(from));
  if (copy_planes(loop, 1)) return;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[i * columns + j] = from[i * row + j * column];
}

// Rows of b are put together many columns at a time: for some rows of a it pays to turn a b that lies by columns.
void multiply_bools(MatmulArgs p) noexcept {
  constexpr std::int64_t kSomeRows = 16;
  if (p.b_column == 1 || p.m < kSomeRows || p.n < kFirstPairs) return multiply_bools_as_they_lie(p);
  const std::unique_ptr<Byte[]> turned(new (std::nothrow) Byte[static_cast<std::size_t>(p.k * p.n)]);
  if (turned == nullptr) return multiply_bools_as_they_lie(p);
  MatmulArgs one = p;
  one.batch = 1;
  one.b = turned.get();
  one.b_row = p.n;
  one.b_column = 1;
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const Byte* const b = static_cast<const Byte*>(p.b) + batch * p.b_batch;
    if (batch == 0 || p.b_batch != 0) copy_in_rows(b, p.b_row, p.b_column, p.k, p.n, turned.get());
    one.a = static_cast<const Byte*>(p.a) + batch * p.a_batch;
    one.c = static_cast<Byte*>(p.c) + batch * p.c_batch;
    multiply_bools_as_they_lie(one);
  }
}

}  // namespace

namespace {

int multiply_conjugate(MatmulArgs args) {
  if (multiply_by_blas(args)) return 0;
  const std::int64_t size = info(args.dtype).itemsize, rows = args.batch * args.m;
  const std::unique_ptr<char[]> copy(new (std::nothrow) char[static_cast<std::size_t>(rows * args.k * size)]);
  if (copy == nullptr) return kErrorMemory;
  const InnerLoop conjugate = find_arithmetic_loop(Op::kConjugate, args.dtype);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from = row / args.m * args.a_batch + row % args.m * args.a_row;
    char* const data[] = {copy.get() + row * args.k * size,
                          static_cast<char*>(const_cast<void*>(args.a)) + from * size};
    const std::int64_t strides[] = {size, args.a_column * size};
    conjugate(data, strides, args.k);
  }
  args.a = copy.get();
  args.a_batch = args.m * args.k;
  args.a_row = args.k;
  args.a_column = 1;
  args.conjugates = false;
  return matmul(args);
}

}  // namespace

int matmul(const MatmulArgs& args) {
  if (args.conjugates) return multiply_conjugate(args);
  if (multiply_thin(args)) return 0;
  if (args.dtype == DType::kBool) return multiply_bools(as_row(args)), 0;
  if (multiply_by_blas(args)) return 0;
  if (is_of_vectors(args)) return multiply_vectors(args);
  return visit_product<kNumericSet>(args.dtype, [&]<class T>() { return Product<T>(args).run(); });
}

}  // namespace dlbridge::nd::host_kernels
