// CUDA's elementwise kernels against the host's on the same data: every operation and dtype over random layouts, then
// copies over many shapes. `--huge` adds arrays past 2^31 elements (8 GB), `--bench` prints GB/s (10 GB), `--small`
// makes every fifth call alone (for compute-sanitizer).
// Link with the host's kernels and CUDA's. Exits non-zero on a difference.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/op_groups.h"
#include "ndarray/kernels/types.h"
#include "tests/cpp/nd/dtypes.h"
#include "tests/cuda/kernels/device_check.cuh"

using namespace dlbridge;
using namespace dlbridge::nd;

namespace {

using testing::dtypes_of;
using testing::failures;

std::mt19937_64 engine(20250101);
std::int64_t draw(std::int64_t n) { return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n)); }

complex<double> get(DType dtype, const void* from) {
  return visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        T element;
        std::memcpy(&element, from, sizeof element);
        return cast<complex<double>>(element);
      },
      complex<double>(0, 0));
}
void put(DType dtype, void* to, double re, double im) {
  visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        T element;
        if constexpr (is_complex_v<T>) element = T(static_cast<real_t<T>>(re), static_cast<real_t<T>>(im));
        else element = cast<T>(re);
        std::memcpy(to, &element, sizeof element);
        return 0;
      },
      0);
}

// --- comparison ------------------------------------------------------------------------------------------------------

// Operations whose device and host results may differ in the last bits.
bool is_inexact(Op op, DType compute) {
  if (!contains(kInexactSet, compute)) return false;
  if (MathOps::has(op) || TrigonometricOps::has(op) || op == Op::kPower) return true;
  return contains(kComplexSet, compute) && (ArithmeticOps::has(op) || DivisionOps::has(op));
}
double tolerance(DType t) {
  switch (t) {
    case DType::kFloat16: return 2e-3;
    case DType::kBFloat16: return 1.6e-2;
    case DType::kFloat32:
    case DType::kComplex64: return 2e-5;
    default: return 1e-12;
  }
}
bool same(double a, double b, double allowed) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= allowed;
}
bool is_alike(DType dtype, const unsigned char* a, const unsigned char* b, double relative) {
  if (std::memcmp(a, b, info(dtype).itemsize) == 0) return true;
  if (!contains(kInexactSet, dtype)) return false;
  const complex<double> x = get(dtype, a), y = get(dtype, b);
  const double size = std::fmax(std::hypot(x.real(), x.imag()), std::hypot(y.real(), y.imag()));
  const double allowed = relative == 0 || std::isinf(size) ? 0 : relative * size + 1e-7 * relative;
  return same(x.real(), y.real(), allowed) && same(x.imag(), y.imag(), allowed);
}

// --- one call on both sides ------------------------------------------------------------------------------------------

// The memory of an operand on the host; the device has a twin of it.
struct Operand {
  std::vector<unsigned char> host;
  std::int64_t base = 0;  // byte where the first element lies
};

bool small = false;
constexpr std::size_t kArena = std::size_t{16} << 20;
unsigned char* arenas[kMaxOperands];

std::string describe(const ElementwiseArgs& args) {
  std::string text = std::string(info(args.op).name) + "<" + std::string(info(args.compute).name) + "> shape";
  for (int d = 0; d < args.ndim; ++d) text += " " + std::to_string(args.shape[d]);
  for (int k = 0; k < args.operands; ++k) {
    text += (args.scalar_mask >> k & 1) != 0 ? " | scalar " : " | ";
    text += std::string(info(args.dtype[k]).name) + " strides";
    for (int d = 0; d < args.ndim; ++d) text += " " + std::to_string(args.strides[k][d]);
  }
  return text + (args.contiguous ? " contiguous" : "");
}

// Runs args, whose data are offsets into the operands' memory, on both sides and compares all of the output's memory,
// so that a write outside the elements is seen too.
void check(ElementwiseArgs args, std::vector<Operand>& operands, double relative) {
  static long asked = 0;
  if (small && asked++ % 5 != 0) return;
  ElementwiseArgs device = args;
  for (int k = 0; k < args.operands; ++k) {
    if ((args.scalar_mask >> k & 1) != 0) continue;
    CUDA_OK(cudaMemcpy(arenas[k], operands[k].host.data(), operands[k].host.size(), cudaMemcpyHostToDevice));
    args.data[k] = operands[k].host.data() + operands[k].base;
    device.data[k] = arenas[k] + operands[k].base;
  }
  const int expected = host_kernels::elementwise(args);
  const int rc = cuda_kernels::elementwise(device);
  if (rc != expected) {
    if (++failures < 30) std::printf("returned %d, host %d: %s\n", rc, expected, describe(args).c_str());
    return;
  }
  std::vector<unsigned char> result(operands[0].host.size());
  CUDA_OK(cudaMemcpy(result.data(), arenas[0], result.size(), cudaMemcpyDeviceToHost));
  const std::size_t itemsize = info(args.dtype[0]).itemsize;
  for (std::size_t i = 0; i + itemsize <= result.size(); i += itemsize)
    if (!is_alike(args.dtype[0], &result[i], &operands[0].host[i], relative)) {
      const complex<double> x = get(args.dtype[0], &result[i]), y = get(args.dtype[0], &operands[0].host[i]);
      if (++failures < 30)
        std::printf("element %zu is (%.17g, %.17g), host (%.17g, %.17g): %s\n", i / itemsize, x.real(), x.imag(),
                    y.real(), y.imag(), describe(args).c_str());
      return;
    }
}

// --- random calls ----------------------------------------------------------------------------------------------------

struct Values {
  bool specials;  // NaN and infinities too
  bool positive;  // 1 to 8: what every dtype holds and every exact operation keeps finite
};

void fill(Operand& operand, DType dtype, std::int64_t elements, Values values) {
  const std::size_t itemsize = info(dtype).itemsize;
  operand.host.resize(static_cast<std::size_t>(elements) * itemsize);
  const bool inexact = contains(kInexactSet, dtype);
  for (std::int64_t i = 0; i < elements; ++i) {
    double re = static_cast<double>(draw(17)) - 8, im = static_cast<double>(draw(9)) / 4 - 1;
    if (values.positive) re = static_cast<double>(1 + draw(8));
    if (inexact && !values.positive) re += static_cast<double>(draw(16)) / 16;
    if (inexact && values.specials && draw(24) == 0) {
      constexpr double kSpecials[] = {HUGE_VAL, -HUGE_VAL, NAN, -0.0};
      re = kSpecials[draw(4)];
    }
    put(dtype, &operand.host[static_cast<std::size_t>(i) * itemsize], re, im);
  }
}

// Lays an operand out over args.shape: dense, or with gaps, steps, reversals, another order of dims, repeats, an odd
// offset, or as a scalar. The output is one of the first three.
void lay_out(ElementwiseArgs& args, int k, Operand& operand, Values values, bool plain) {
  const auto itemsize = static_cast<std::int64_t>(info(args.dtype[k]).itemsize);
  std::int64_t strides[kLoopDims], low = 0, extent = 1;
  int order[kLoopDims];
  for (int d = 0; d < args.ndim; ++d) order[d] = d;
  const int kind = plain ? 0 : static_cast<int>(draw(k == 0 ? 3 : 8));
  if (kind == 3)
    for (int d = 0; d < args.ndim; ++d) std::swap(order[d], order[draw(args.ndim)]);
  std::int64_t next = kind == 1 ? 2 : 1;
  for (int i = 0; i < args.ndim; ++i) {
    const int d = order[i];
    const bool repeats = (kind == 4 && d == 0) || (kind == 5 && d > 0) || (kind == 6 && draw(2) == 0);
    strides[d] = repeats ? 0 : next;
    if (!repeats) next *= args.shape[d];
    if (kind == 2 && draw(2) == 0) next += 1 + draw(4);
    if (kind == 7 && draw(2) == 0) {
      low += strides[d] * (args.shape[d] - 1);
      strides[d] = -strides[d];
    }
  }
  for (int d = 0; d < args.ndim; ++d) extent += std::abs(strides[d]) * (args.shape[d] - 1);
  const std::int64_t offset = !plain && draw(3) == 0 ? 1 + draw(3) : 0;
  fill(operand, args.dtype[k], extent + offset + 3, values);
  operand.base = (low + offset) * itemsize;
  for (int d = 0; d < args.ndim; ++d) args.strides[k][d] = strides[d] * itemsize;
  const bool condition = args.op == Op::kWhere && k == 1;
  if (k > 0 && !plain && draw(6) == 0) {
    args.scalar_mask = static_cast<std::uint8_t>(args.scalar_mask | 1 << k);
    const double value = static_cast<double>(draw(4) + (values.positive ? 1 : 0));
    put(condition ? DType::kBool : args.compute, args.scalars[k].bytes, value, 1);
    for (int d = 0; d < args.ndim; ++d) args.strides[k][d] = 0;
  }
}

constexpr std::int64_t kExtents[] = {1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 33, 64, 100, 128, 257};

void random_call(Op op, DType compute, bool mixed) {
  ElementwiseArgs args{};
  args.op = op;
  args.compute = compute;
  args.operands = static_cast<std::uint8_t>(info(op).operands + 1);
  const auto all = dtypes_of(kAllSet);
  for (int k = 0; k < args.operands; ++k) {
    const bool condition = op == Op::kWhere && k == 1;
    args.dtype[k] = k == 0 ? result_dtype(info(op).rule, compute) : condition ? DType::kBool : compute;
    if (mixed && !condition && draw(2) == 0)
      args.dtype[k] = all[static_cast<std::size_t>(draw(static_cast<std::int64_t>(all.size())))];
  }
  args.contiguous = draw(4) == 0;
  args.ndim = args.contiguous ? 1 : static_cast<int>(draw(5));
  args.size = 1;
  for (int d = 0; d < args.ndim; ++d) {
    std::int64_t extent = kExtents[draw(std::size(kExtents))];
    if (args.size * extent > 40000) extent = 2;
    if (args.contiguous) extent = 1 + draw(5000);
    args.shape[d] = extent;
    args.size *= extent;
  }
  const bool inexact = is_inexact(op, compute);
  const Values values{.specials = !mixed && !(inexact && contains(kComplexSet, compute)), .positive = mixed};
  std::vector<Operand> operands(args.operands);
  for (int k = 0; k < args.operands; ++k)
    lay_out(args, k, operands[static_cast<std::size_t>(k)], values, args.contiguous);
  if (args.contiguous && draw(2) == 0)  // still dense, but no vector is aligned
    for (int k = 0; k < args.operands; ++k)
      operands[static_cast<std::size_t>(k)].base = info(args.dtype[k]).itemsize * (draw(2) + 1);
  const bool cancels = op == Op::kLogaddexp || op == Op::kLogaddexp2 || op == Op::kSinc;  // near zero
  const double near_zero = cancels ? 16 : 1;
  check(args, operands, inexact ? tolerance(compute) * near_zero : 0);
}

void test_operations() {
  for (std::size_t o = 0; o < kOps.size(); ++o)
    for (DType compute : dtypes_of(kOps[o].dtypes)) {
      const Op op = static_cast<Op>(o);
      for (int i = 0; i < 10; ++i) random_call(op, compute, false);
      // With casts around it an inexact result could fall to either side of an integer.
      if (!is_inexact(op, compute))
        for (int i = 0; i < 4; ++i) random_call(op, compute, true);
    }
}

// --- copies ----------------------------------------------------------------------------------------------------------

void permuted_copy(DType t, std::vector<std::int64_t> shape, std::vector<int> order, std::int64_t offset,
                   std::int64_t gap) {
  ElementwiseArgs args{};
  args.op = Op::kPositive;
  args.compute = args.dtype[0] = args.dtype[1] = t;
  args.operands = 2;
  args.ndim = static_cast<int>(shape.size());
  args.size = 1;
  const auto itemsize = static_cast<std::int64_t>(info(t).itemsize);
  std::int64_t out_next = 1, in_next = 1;
  for (int d = 0; d < args.ndim; ++d) {
    args.shape[d] = shape[static_cast<std::size_t>(d)];
    args.size *= args.shape[d];
    args.strides[0][d] = out_next * itemsize;
    out_next = out_next * args.shape[d] + gap;
  }
  for (int d : order) {
    args.strides[1][d] = in_next * itemsize;
    in_next = in_next * args.shape[d] + gap;
  }
  std::vector<Operand> operands(2);
  fill(operands[0], t, out_next + offset, {false, false});
  fill(operands[1], t, in_next + offset, {true, false});
  operands[0].base = operands[1].base = offset * itemsize;
  check(args, operands, 0);
}

void test_copies() {
  const std::vector<std::vector<std::int64_t>> kPairs = {{64, 64},  {33, 65},   {128, 256}, {260, 132}, {17, 1000},
                                                         {3, 5000}, {5000, 3},  {16, 16},   {1, 700},   {31, 4},
                                                         {4, 4096}, {511, 513}, {96, 130}};
  for (DType t : {DType::kBool, DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kInt64, DType::kComplex128})
    for (std::int64_t offset : {0, 1})
      for (std::int64_t gap : {0, 1, 4}) {
        for (const auto& shape : kPairs) permuted_copy(t, shape, {1, 0}, offset, gap);
        const std::vector<std::vector<int>> kOrders = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        for (const auto& order : kOrders) {
          permuted_copy(t, {20, 36, 17}, order, offset, gap);
          permuted_copy(t, {2, 36, 48}, order, offset, gap);
          permuted_copy(t, {40, 3, 64}, order, offset, gap);
        }
        permuted_copy(t, {5, 18, 3, 20}, {3, 1, 0, 2}, offset, gap);
      }
  for (DType from : dtypes_of(kAllSet))
    for (DType to : dtypes_of(kAllSet))
      for (bool aligned : {true, false}) {
        ElementwiseArgs args{};
        args.op = Op::kPositive;
        args.compute = args.dtype[0] = to;
        args.dtype[1] = from;
        args.operands = 2;
        args.contiguous = true;
        args.ndim = 1;
        args.size = args.shape[0] = 3001;
        std::vector<Operand> operands(2);
        for (int k = 0; k < 2; ++k) {
          const std::int64_t itemsize = info(args.dtype[k]).itemsize;
          fill(operands[static_cast<std::size_t>(k)], args.dtype[k], 3005, {!contains(kIntSet, to), false});
          operands[static_cast<std::size_t>(k)].base = aligned ? 0 : itemsize;
          args.strides[k][0] = itemsize;
        }
        check(args, operands, 0);
      }
}

void test_ranges() {
  for (DType t : dtypes_of(kBoolSet | kRealSet))
    for (std::int64_t n : {1, 2, 7, 16, 100, 4097, 70000})
      for (int variant = 0; variant < 6; ++variant) {
        const auto itemsize = static_cast<std::int64_t>(info(t).itemsize);
        RangeArgs args{};
        args.dtype = t;
        args.n = n;
        args.start = 0.1;
        args.step = variant % 3 == 0 ? 0 : 0.3;
        args.int_start = -7;
        args.int_step = variant % 3 == 0 ? 0 : 3;
        args.endpoint = variant % 3 == 2;
        args.stop = 5.5;
        const std::int64_t offset = variant < 3 ? 0 : itemsize;
        std::vector<unsigned char> host(static_cast<std::size_t>((n + 2) * itemsize), 9), result(host.size());
        CUDA_OK(cudaMemcpy(arenas[0], host.data(), host.size(), cudaMemcpyHostToDevice));
        args.out = host.data() + offset;
        const int expected = host_kernels::range(args);
        args.out = arenas[0] + offset;
        const int rc = cuda_kernels::range(args);
        CUDA_OK(cudaMemcpy(result.data(), arenas[0], result.size(), cudaMemcpyDeviceToHost));
        if ((rc != expected || result != host) && ++failures < 30)
          std::printf("range<%s> n=%lld variant %d differs, rc %d\n", std::string(info(t).name).c_str(),
                      static_cast<long long>(n), variant, rc);
      }
}

// --- past 2^31 -------------------------------------------------------------------------------------------------------

// Compares uint8 elements of the device with a formula, around every place where an index could wrap.
template <class Expected>
void check_windows(const char* what, const unsigned char* device, std::int64_t n, Expected expected) {
  constexpr std::int64_t kWindow = 1 << 16;
  std::vector<unsigned char> part(kWindow);
  const std::int64_t middle = std::int64_t{1} << 31;
  for (std::int64_t begin : {std::int64_t{0}, middle / 2, middle - kWindow / 2, n - kWindow}) {
    if (begin < 0 || begin + kWindow > n) continue;
    CUDA_OK(cudaMemcpy(part.data(), device + begin, kWindow, cudaMemcpyDeviceToHost));
    for (std::int64_t i = 0; i < kWindow; ++i)
      if (part[static_cast<std::size_t>(i)] != expected(begin + i)) {
        ++failures;
        std::printf("%s: element %lld is %d, not %d\n", what, static_cast<long long>(begin + i),
                    part[static_cast<std::size_t>(i)], expected(begin + i));
        return;
      }
  }
}

ElementwiseArgs bytes_args(Op op, int operands) {
  ElementwiseArgs args{};
  args.op = op;
  args.compute = DType::kUInt8;
  args.operands = static_cast<std::uint8_t>(operands);
  for (int k = 0; k < operands; ++k) args.dtype[k] = DType::kUInt8;
  return args;
}

void test_huge() {
  const std::int64_t n = (std::int64_t{1} << 31) + 70001;
  const std::int64_t rows = 50000, columns = 46000;  // more than 2^31 too
  unsigned char *in = nullptr, *out = nullptr;
  CUDA_OK(cudaMalloc(&in, static_cast<std::size_t>(2 * n)));
  CUDA_OK(cudaMalloc(&out, static_cast<std::size_t>(2 * n)));
  RangeArgs counting{};
  counting.dtype = DType::kUInt8;
  counting.n = 2 * n;
  counting.out = in;
  counting.int_step = 37;  // odd: every byte value in turn
  counting.int_start = 11;
  failures += cuda_kernels::range(counting) != 0;
  const auto value = [](std::int64_t i) { return static_cast<unsigned char>(i * 37 + 11); };
  check_windows("range", in, 2 * n, value);

  ElementwiseArgs args = bytes_args(Op::kAdd, 3);
  args.contiguous = true;
  args.ndim = 1;
  args.size = args.shape[0] = n;
  args.data[0] = out;
  args.data[1] = args.data[2] = in;
  failures += cuda_kernels::elementwise(args) != 0;
  check_windows("add", out, n, [&](std::int64_t i) { return static_cast<unsigned char>(2 * value(i)); });
  args.data[1] = in + 1;  // the strided kernel, in parts
  failures += cuda_kernels::elementwise(args) != 0;
  check_windows("unaligned add", out, n,
                [&](std::int64_t i) { return static_cast<unsigned char>(value(i) + value(i + 1)); });
  args.contiguous = false;
  for (int k = 0; k < 3; ++k) args.strides[k][0] = k == 0 ? 1 : 2;
  failures += cuda_kernels::elementwise(args) != 0;
  check_windows("add of every other", out, n - 1,
                [&](std::int64_t i) { return static_cast<unsigned char>(value(2 * i) + value(2 * i + 1)); });

  ElementwiseArgs copy = bytes_args(Op::kPositive, 2);
  copy.ndim = 2;
  copy.size = rows * columns;
  copy.shape[0] = rows;
  copy.shape[1] = columns;
  copy.strides[0][0] = 1;
  copy.strides[0][1] = rows;
  copy.strides[1][0] = columns;
  copy.strides[1][1] = 1;
  copy.data[0] = out;
  copy.data[1] = in;
  failures += cuda_kernels::elementwise(copy) != 0;
  check_windows("transpose", out, rows * columns, [&](std::int64_t i) { return value(i % rows * columns + i / rows); });
  CUDA_OK(cudaFree(in));
  CUDA_OK(cudaFree(out));
}

}  // namespace

#include "tests/cuda/kernels/bench_elementwise.cuh"

int main(int argc, char** argv) {
  for (auto& arena : arenas) CUDA_OK(cudaMalloc(&arena, kArena));
  bool bench = false, huge = false;
  for (int i = 1; i < argc; ++i) {
    bench = bench || std::strcmp(argv[i], "--bench") == 0;
    small = small || std::strcmp(argv[i], "--small") == 0;
    huge = huge || std::strcmp(argv[i], "--huge") == 0;
  }
  test_operations();
  test_copies();
  test_ranges();
  if (huge) test_huge();
  if (bench && failures == 0) run_benchmarks();
  for (auto& arena : arenas) CUDA_OK(cudaFree(arena));
  return testing::report();
}
