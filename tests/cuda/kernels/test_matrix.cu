// Small matrices on the device against the host's kernel: the same algorithm by one thread, but for the instructions
// that a product and a sum become. Near enough are results within a few roundings of the largest element.
#include <cmath>
#include <limits>
#include <random>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/small_matrix.h"
#include "ndarray/kernels/types.h"
#include "tests/cuda/kernels/device_check.cuh"

namespace dlbridge::nd {
namespace {

using namespace testing;

constexpr MatrixOp kOps[] = {MatrixOp::kCholesky, MatrixOp::kDet, MatrixOp::kSlogdet, MatrixOp::kInv, MatrixOp::kSolve};
constexpr const char* kNames[] = {"cholesky", "det", "slogdet", "inv", "solve"};

bool has_info(MatrixOp op) { return op != MatrixOp::kDet && op != MatrixOp::kSlogdet; }

MatrixArgs args_of(MatrixOp op, DType dtype, std::int64_t n, std::int64_t matrices, std::int64_t sides) {
  MatrixArgs args{};
  args.op = op;
  args.dtype = dtype;
  args.ndim = 1;
  args.n = n;
  args.matrices = args.shape[0] = matrices;
  if (has_info(op)) args.columns = op == MatrixOp::kSolve ? sides : n;
  args.stream = kLegacyStream;
  return args;
}

// Elements between rows, columns and matrices. Matrices of `extra` elements more than they need.
MatrixOperand lie_of(const void* data, std::int64_t rows, std::int64_t columns, bool turned, std::int64_t extra,
                     std::int64_t itemsize) {
  const std::int64_t row = turned ? 1 : columns, column = turned ? rows : 1;
  return {data, row * itemsize, column * itemsize, {(rows * columns + extra) * itemsize}};
}

template <class T>
struct Problem {
  MatrixArgs args;
  bool turned;
  std::vector<T> a, b;

  // Where there are several matrices, the second is singular, or not positive definite.
  Problem(std::mt19937& random, MatrixArgs of, bool columns_first) : args(of), turned(columns_first) {
    const auto most = static_cast<real_t<T>>(1 / std::sqrt(static_cast<double>(args.n)));
    std::uniform_real_distribution<real_t<T>> uniform(-most, most);
    const auto fill = [&](std::vector<T>& x, std::int64_t columns) {
      x.resize(static_cast<std::size_t>(args.matrices * (args.n * columns + kExtra)));
      for (T& v : x) {
        v = T(uniform(random));
        if constexpr (is_complex_v<T>) v = T(v.real(), uniform(random));
      }
    };
    fill(a, args.n);
    if (args.op == MatrixOp::kSolve) fill(b, args.columns);
    for (std::int64_t m = 0; m < args.matrices; ++m)
      for (std::int64_t i = 0; i < args.n; ++i) {
        // Far from the diagonal: rows have to change their places.
        const std::int64_t j = args.op == MatrixOp::kCholesky ? i : args.n - 1 - i;
        at(m, i, j) += T(args.op == MatrixOp::kCholesky ? 3 : 1);
        if (m == 1 && args.n > 1) at(m, i, args.n / 2) = T(0);
      }
  }

  static constexpr std::int64_t kExtra = 3;
  T& at(std::int64_t m, std::int64_t i, std::int64_t j) {
    const std::int64_t place = turned ? j * args.n + i : i * args.n + j;
    return a[static_cast<std::size_t>(m * (args.n * args.n + kExtra) + place)];
  }
  std::int64_t results() const { return args.matrices * (has_info(args.op) ? args.n * args.columns : 1); }

  MatrixArgs with(const void* matrices, const void* right, void* out, void* logs, void* info) const {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
    MatrixArgs found = args;
    found.a = lie_of(matrices, args.n, args.n, turned, kExtra, kSize);
    found.b = lie_of(right, args.n, args.columns, !turned, kExtra, kSize);
    found.out = out;
    found.logs = logs;
    found.info = static_cast<std::int32_t*>(info);
    return found;
  }
};

template <class T>
std::vector<T> elements(const DeviceBytes& from, std::int64_t count) {
  const auto bytes = from.get();
  std::vector<T> found(static_cast<std::size_t>(count));
  if (count > 0) std::memcpy(found.data(), bytes.data(), found.size() * sizeof(T));
  return found;
}

double size_of(double x) { return std::abs(x); }
template <class T>
double size_of(complex<T> x) {
  return std::hypot(static_cast<double>(x.real()), static_cast<double>(x.imag()));
}

// By matrices, each within its own largest element.
template <class T>
bool is_near(const std::vector<T>& found, const std::vector<T>& wanted, std::int64_t matrices, double least) {
  const std::size_t each = wanted.size() / static_cast<std::size_t>(matrices);
  for (std::size_t begin = 0; begin < wanted.size(); begin += each) {
    double largest = least, error = 0;
    for (std::size_t i = begin; i < begin + each; ++i) {
      const double size = size_of(wanted[i]);
      if (!std::isfinite(size)) {
        if (std::isnan(size) ? !std::isnan(size_of(found[i])) : !(found[i] == wanted[i])) return false;
        continue;
      }
      largest = std::max(largest, size);
      const double off = size_of(found[i] - wanted[i]);
      if (std::isnan(off)) return false;
      error = std::max(error, off);
    }
    if (error > largest * 1e3 * std::numeric_limits<real_t<T>>::epsilon()) return false;
  }
  return true;
}

template <class T>
void compare(std::mt19937& random, MatrixOp op, std::int64_t n, std::int64_t matrices, std::int64_t sides,
             bool turned) {
  const auto given = args_of(op, dtype_of_native<T>::value, n, matrices, sides);
  if (functors::plan_matrices(given).bytes == 0) return;
  const Problem<T> problem(random, given, turned);
  std::vector<T> out(static_cast<std::size_t>(problem.results()));
  std::vector<real_t<T>> logs(static_cast<std::size_t>(matrices));
  std::vector<std::int32_t> info(static_cast<std::size_t>(matrices));
  DEVICE_CHECK(host_kernels::small_matrices(
                   problem.with(problem.a.data(), problem.b.data(), out.data(), logs.data(), info.data())) == 0);
  const DeviceBytes da(problem.a.data(), problem.a.size() * sizeof(T)),
      db(problem.b.data(), problem.b.size() * sizeof(T)), dout(out.size() * sizeof(T)),
      dlogs(logs.size() * sizeof(logs[0])), dinfo(info.size() * sizeof(info[0]));
  const std::string detail = std::string(kNames[static_cast<int>(op)]) + " " +
                             std::string(dlbridge::info(given.dtype).name) + " " + std::to_string(matrices) + " x " +
                             std::to_string(n) + ", " + std::to_string(sides) + " sides" + (turned ? ", turned" : "");
  DEVICE_CHECK(
      cuda_kernels::small_matrices(problem.with(da.data(), db.data(), dout.data(), dlogs.data(), dinfo.data())) == 0,
      detail);
  DEVICE_CHECK(is_near(elements<T>(dout, problem.results()), out, matrices, 0), detail);
  if (has_info(op)) DEVICE_CHECK(elements<std::int32_t>(dinfo, matrices) == info, detail);
  if (op == MatrixOp::kSlogdet) DEVICE_CHECK(is_near(elements<real_t<T>>(dlogs, matrices), logs, matrices, 1), detail);
}

// Around every number of rows at which another team works, and the largest that fit.
void compare_all(bool few) {
  std::mt19937 random(43);
  std::vector<std::int64_t> rows{1, 2, 3, 7, 8, 9, 16, 17, 32, 33};
  if (!few) rows.insert(rows.end(), {5, 12, 15, 20, 31, 48, 55, 56, 63, 64, 65, 82, 89, 90, 100, 119, 127});
  for (const MatrixOp op : kOps)
    for (const std::int64_t n : rows)
      for (const bool turned : {false, true})
        for (const std::int64_t matrices : {1, 7}) {
          const std::int64_t sides = matrices == 1 ? 1 : few ? 17 : 70;
          compare<float>(random, op, n, matrices, sides, turned);
          compare<double>(random, op, n, matrices, sides, turned);
          compare<complex<float>>(random, op, n, matrices, sides, turned);
          compare<complex<double>>(random, op, n, matrices, sides, turned);
        }
  if (!few) compare<float>(random, MatrixOp::kInv, 4, 100'000, 0, false);
}

void bench_one(MatrixOp op, DType dtype, std::int64_t n, std::int64_t matrices) {
  const auto itemsize = static_cast<std::size_t>(info(dtype).itemsize);
  MatrixArgs args = args_of(op, dtype, n, matrices, 1);
  if (functors::plan_matrices(args).bytes == 0) return;
  const auto count = static_cast<std::size_t>(matrices * n);
  // The unit matrix, for which all steps are made as for others.
  std::vector<unsigned char> unit(count * static_cast<std::size_t>(n) * itemsize);
  for (std::int64_t m = 0; m < matrices; ++m)
    for (std::int64_t i = 0; i < n; ++i) {
      const auto place = static_cast<std::size_t>((m * n + i) * n + i) * itemsize;
      visit_dtype<functors::kMatrixSet>(
          dtype,
          [&]<class T>() {
            const T one(1);
            std::memcpy(unit.data() + place, &one, sizeof one);
            return 0;
          },
          0);
    }
  const DeviceBytes a(unit.data(), unit.size()), out(unit.size()), info_bytes(static_cast<std::size_t>(matrices) * 8);
  const auto step = static_cast<std::int64_t>(itemsize);
  args.a = {a.data(), n * step, step, {n * n * step}};
  args.b = {a.data(), n * step, step, {n * n * step}};
  args.out = out.data();
  args.logs = info_bytes.data();
  args.info = info_bytes.as<std::int32_t>();
  const double ms = milliseconds([&] { DEVICE_CHECK(cuda_kernels::small_matrices(args) == 0); });
  std::printf("%-10s %-10s %6lld x %3lld %9.1f us\n", kNames[static_cast<int>(op)],
              std::string(info(dtype).name).c_str(), static_cast<long long>(matrices), static_cast<long long>(n),
              ms * 1e3);
}

void bench_all() {
  for (const MatrixOp op : kOps)
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kComplex64})
      for (const std::int64_t n : {4, 7, 16, 32, 40, 64, 89, 119})
        for (const std::int64_t matrices : {1, 100, 10'000}) bench_one(op, dtype, n, matrices);
}

}  // namespace
}  // namespace dlbridge::nd

int main(int argc, char** argv) {
  using namespace dlbridge::nd;
  compare_all(testing::has_option(argc, argv, "--small"));
  const int rc = testing::report();
  if (rc == 0 && testing::has_option(argc, argv, "--bench")) bench_all();
  return rc;
}
