// Matrix products of the device against the host's. Operands are small integers, so that every order of summation gives
// the same result in every dtype.
#include <random>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/types.h"
#include "tests/cuda/kernels/device_check.cuh"

namespace dlbridge::nd {
namespace {

using namespace testing;

struct Sizes {
  std::int64_t batch, m, n, k;
};

// How a matrix of (rows, columns) lies: element strides, where element 0 is, and the elements of one.
struct Lie {
  std::int64_t row, column, first, size;
};
enum class Order { kRows, kColumns, kPaddedRows, kBackwards };
Lie lie_of(std::int64_t rows, std::int64_t columns, Order order) {
  switch (order) {
    case Order::kRows: return {columns, 1, 0, rows * columns};
    case Order::kColumns: return {1, rows, 0, rows * columns};
    case Order::kPaddedRows: return {columns + 3, 1, 0, rows * (columns + 3)};
    default: return {-columns, 1, (rows - 1) * columns, rows * columns};  // cuBLAS cannot say it
  }
}

Bytes small_numbers(std::mt19937& random, DType dtype, std::int64_t count) {
  Bytes out(static_cast<std::size_t>(count * info(dtype).itemsize));
  visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        for (std::size_t i = 0; i < out.size(); i += sizeof(T)) {
          T v = cast<T>(static_cast<int>(random() % 3));
          // No negative parts: of a single product (k = 1) the sign of a zero is each library's own.
          if constexpr (is_complex_v<T>) v = T(v.real(), static_cast<real_t<T>>(static_cast<int>(random() % 3)));
          std::memcpy(out.data() + i, &v, sizeof v);
        }
        return 0;
      },
      0);
  return out;
}

void compare(std::mt19937& random, DeviceWorkspace& workspace, DType dtype, Sizes s, Order a_order, Order b_order,
             std::size_t offset) {
  const std::int64_t itemsize = info(dtype).itemsize;
  const Lie la = lie_of(s.m, s.k, a_order), lb = lie_of(s.k, s.n, b_order);
  const Bytes a = small_numbers(random, dtype, s.batch * la.size), b = small_numbers(random, dtype, s.batch * lb.size);
  Bytes c(static_cast<std::size_t>(s.batch * s.m * s.n * itemsize));
  MatmulArgs args{};
  args.dtype = dtype;
  args.batch = s.batch;
  args.m = s.m;
  args.n = s.n;
  args.k = s.k;
  args.a_batch = la.size;
  args.a_row = la.row;
  args.a_column = la.column;
  args.b_batch = s.batch == 2 ? 0 : lb.size;  // one matrix for all
  args.b_row = lb.row;
  args.b_column = lb.column;
  args.c_batch = s.m * s.n;
  args.a = a.data() + la.first * itemsize;
  args.b = b.data() + lb.first * itemsize;
  args.c = c.data();
  DEVICE_CHECK(host_kernels::matmul(args) == 0);
  const DeviceBytes da(a.data(), a.size(), offset * static_cast<std::size_t>(itemsize)), db(b.data(), b.size()),
      dc(c.size());
  args.a = da.data() + la.first * itemsize;
  args.b = db.data() + lb.first * itemsize;
  args.c = dc.data();
  args.workspace = workspace.get();
  args.stream = kLegacyStream;
  const std::string detail = std::string(info(dtype).name) + " " + std::to_string(s.batch) + " x " +
                             std::to_string(s.m) + "," + std::to_string(s.k) + "," + std::to_string(s.n) + " orders " +
                             std::to_string(static_cast<int>(a_order)) + std::to_string(static_cast<int>(b_order));
  DEVICE_CHECK(cuda_kernels::matmul(args) == 0, detail);
  DEVICE_CHECK(dc.get() == c, detail);
}

// Every combination of small extents: degenerate matrices, edges of tiles, and what libraries have kernels of their own
// for.
void compare_small(bool few) {
  std::mt19937 random(42);
  DeviceWorkspace workspace;
  std::vector<std::int64_t> extents{1, 2, 3, 16, 17};
  if (!few) extents.insert(extents.end(), {64, 200});
  for (unsigned d = 0; d < 32; ++d) {
    if (!contains(kAllSet, static_cast<DType>(d))) continue;
    for (const std::int64_t m : extents)
      for (const std::int64_t n : extents)
        for (const std::int64_t k : extents)
          for (const Order a_order : {Order::kRows, Order::kColumns})
            for (const Order b_order : {Order::kRows, Order::kColumns})
              compare(random, workspace, static_cast<DType>(d), {1, m, n, k}, a_order, b_order, 0);
  }
}

void compare_all() {
  std::mt19937 random(41);
  DeviceWorkspace workspace;
  const Sizes sizes[] = {{1, 1, 1, 1},    {2, 65, 7, 17},  {1, 130, 64, 16}, {3, 5, 70, 33},  {1, 2, 2, 300},
                         {1, 1, 1, 9000}, {1, 1, 300, 40}, {2, 300, 1, 37},  {1, 1, 5, 2100}, {1, 5, 1, 2100},
                         {40, 1, 1, 12},  {1, 2000, 1, 3}, {1, 1, 2048, 64}};
  const Order orders[] = {Order::kRows, Order::kColumns, Order::kPaddedRows, Order::kBackwards};
  for (unsigned d = 0; d < 32; ++d) {
    if (!contains(kAllSet, static_cast<DType>(d))) continue;
    for (const Sizes& s : sizes) {
      const auto at = random();
      for (unsigned i = 0; i < 4; ++i)
        compare(random, workspace, static_cast<DType>(d), s, orders[i], orders[(i + at) % 4], i % 2);
    }
  }
}

void bench_one(const char* name, DType dtype, Sizes s, bool b_transposed) {
  const auto itemsize = static_cast<std::size_t>(info(dtype).itemsize);
  const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(s.batch * rows * columns) * itemsize;
  };
  const DeviceBytes a(bytes(s.m, s.k)), b(bytes(s.k, s.n)), c(bytes(s.m, s.n));
  CUDA_OK(cudaMemset(a.data(), 0, bytes(s.m, s.k)));
  CUDA_OK(cudaMemset(b.data(), 0, bytes(s.k, s.n)));
  DeviceWorkspace workspace;
  MatmulArgs args{};
  args.dtype = dtype;
  args.batch = s.batch;
  args.m = s.m;
  args.n = s.n;
  args.k = s.k;
  args.a = a.data();
  args.b = b.data();
  args.c = c.data();
  args.a_batch = s.m * s.k;
  args.b_batch = s.k * s.n;
  args.c_batch = s.m * s.n;
  args.a_row = s.k;
  args.a_column = 1;
  args.b_row = b_transposed ? 1 : s.n;
  args.b_column = b_transposed ? s.k : 1;
  args.stream = kLegacyStream;
  const double ms = milliseconds([&] {
    args.workspace = workspace.get();
    DEVICE_CHECK(cuda_kernels::matmul(args) == 0);
  });
  std::printf("%-44s %9.3f ms %8.0f GB/s %8.1f Tflop/s\n", name, ms,
              static_cast<double>(bytes(s.m, s.k) + bytes(s.k, s.n) + bytes(s.m, s.n)) / ms * 1e-6,
              2.0 * static_cast<double>(s.batch * s.m * s.n) * static_cast<double>(s.k) / ms * 1e-9);
}

void bench_all() {
  bench_one("float32 4096^3", DType::kFloat32, {1, 4096, 4096, 4096}, false);
  bench_one("float16 8192^3", DType::kFloat16, {1, 8192, 8192, 8192}, false);
  bench_one("float64 4096^3", DType::kFloat64, {1, 4096, 4096, 4096}, false);
  bench_one("int32 2048^3 (tiles)", DType::kInt32, {1, 2048, 2048, 2048}, false);
  bench_one("dot float32 2^27", DType::kFloat32, {1, 1, 1, std::int64_t{1} << 27}, false);
  bench_one("matrix-vector float32 16384^2", DType::kFloat32, {1, 16384, 1, 16384}, false);
  bench_one("vector-matrix float32 16384^2", DType::kFloat32, {1, 1, 16384, 16384}, false);
  bench_one("matrix-vector float32 (2^25, 8)", DType::kFloat32, {1, std::int64_t{1} << 25, 1, 8}, false);
  bench_one("vector-matrix float32 (2^25, 8)", DType::kFloat32, {1, 1, 8, std::int64_t{1} << 25}, false);
  bench_one("matrix-vector float16 32768^2", DType::kFloat16, {1, 32768, 1, 32768}, false);
  bench_one("vecdot float32 (2^21, 64)", DType::kFloat32, {std::int64_t{1} << 21, 1, 1, 64}, false);
}

}  // namespace
}  // namespace dlbridge::nd

int main(int argc, char** argv) {
  using namespace dlbridge::nd;
  compare_small(testing::has_option(argc, argv, "--small"));
  compare_all();
  const int rc = testing::report();
  if (rc == 0 && testing::has_option(argc, argv, "--bench")) bench_all();
  return rc;
}
