// Reductions and scans on the device against the host's; `--bench` prints their speed.
// Build: nvcc, with the kernels of ndarray/kernels/{host,cuda} linked in.
#include <cstring>
#include <string>

#include "tests/cpp/nd/reduce_cases.h"
#include "tests/cuda/kernels/rows_check.cuh"

using namespace dlbridge;
using namespace dlbridge::nd;
using namespace dlbridge::nd::rows_check;
using namespace dlbridge::nd::testing_cases;

namespace {

constexpr DType kDTypesOfArrays[] = {DType::kBool,    DType::kInt8,      DType::kInt16,     DType::kInt32,
                                     DType::kInt64,   DType::kUInt8,     DType::kUInt16,    DType::kUInt32,
                                     DType::kUInt64,  DType::kFloat16,   DType::kBFloat16,  DType::kFloat32,
                                     DType::kFloat64, DType::kComplex64, DType::kComplex128};

void check(Arena& arena, ReduceOp op, DType in, DType accumulate, DType out_dtype, const View& view, unsigned reduced,
           bool specials = false) {
  if (is_skipped(static_cast<std::size_t>(view.span()) * info(in).itemsize)) return;
  const std::vector<unsigned char> x = random_buffer(in, view.span(), 7, specials);
  ReduceArgs args = make_args(op, in, accumulate, out_dtype, view, reduced);
  args.correction = 0.5;
  const std::int64_t itemsize = info(out_dtype).itemsize, offset = view.offset * info(in).itemsize;
  std::vector<unsigned char> want(static_cast<std::size_t>(args.kept_size * itemsize), 0xcd), got = want, again = want;
  args.in = x.data() + offset;
  args.out = want.data();
  const int host_status = host_kernels::reduce(args);
  DeviceBuffer in_buffer(x.size()), out_buffer(got.size());
  in_buffer.upload(x.data());
  args.in = static_cast<char*>(in_buffer.get()) + offset;
  args.out = out_buffer.get();
  args.workspace = arena.workspace();
  int status = 0;
  for (std::vector<unsigned char>* result : {&got, &again}) {
    arena.reset();
    out_buffer.upload(result->data());
    status |= cuda_kernels::reduce(args);
    out_buffer.download(result->data());
  }
  ++checks;
  std::string what = std::string(info(op).name) + " " + std::string(info(in).name) + " to " +
                     std::string(info(out_dtype).name) + " " + view.id + " axes " + std::to_string(reduced);
  if (host_status != 0 || status != 0) return fail((what + " status " + std::to_string(status)).c_str());
  if (got != again) return fail((what + ": two runs differ").c_str());
  for (std::int64_t i = 0; i < args.kept_size; ++i) {
    const Value a = value_at(out_dtype, got.data() + i * itemsize), b = value_at(out_dtype, want.data() + i * itemsize);
    if (close(a, b, out_dtype, args.reduced_size)) continue;
    what += " at " + std::to_string(i) + ": " + std::to_string(a.real()) + ", host " + std::to_string(b.real());
    return fail(what.c_str());
  }
}

void check_default(Arena& arena, ReduceOp op, DType in, const View& view, unsigned reduced, bool specials = false) {
  check(arena, op, in, default_accumulate(op, in), default_out(op, in), view, reduced, specials);
}

std::vector<View> small_views() {
  return {dense({37}),
          dense({1000}),
          dense({5, 33}),
          dense({33, 5}, 1),
          transposed(dense({5, 33})),
          stepped(dense({6, 34}), 1, 2),
          stepped(stepped(dense({7, 9}), 0, -1), 1, -2),
          dense({40, 8}),
          dense({300, 4}),
          dense({16, 70}),
          dense({5, 7, 16}),
          transposed(dense({4, 3, 6})),
          dense({3, 5, 2, 4, 3}),
          {"broadcast", {4, 5}, {0, 1}, 0}};
}
std::vector<View> large_views() {
  return {dense({3000000}),
          dense({3000001}, 3),
          dense({2, 1000000}),
          dense({200000, 8}),
          dense({8, 200000}),
          dense({32768, 32}),
          dense({100000, 12}),
          dense({100001, 3}),
          dense({1000, 1000}),
          dense({60, 70, 96}),
          dense({100, 30, 300}),
          dense({20000, 33}),
          dense({3000, 100}, 1),
          dense({300, 4096}),
          dense({60, 5003}),
          dense({20, 40, 1024}),
          stepped(dense({2, 400000}), 1, 2),
          transposed(dense({2000, 300})),
          stepped(dense({3000, 200}), 0, -1)};
}

void check_reductions(Arena& arena) {
  for (std::size_t o = 0; o < kReduceOps.size(); ++o) {
    const auto op = static_cast<ReduceOp>(o);
    for (const DType in : kDTypesOfArrays) {
      if (!contains(kReduceOps[o].dtypes, in)) continue;
      const bool small_product = op == ReduceOp::kProd && contains(kInexactSet, in);
      for (const View& view :
           small_product ? std::vector<View>{dense({3, 4}), transposed(dense({2, 5}))} : small_views())
        for (unsigned reduced = 1; reduced < (1u << view.shape.size()); ++reduced)
          check_default(arena, op, in, view, reduced);
    }
  }
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kArgmax, ReduceOp::kArgmin, ReduceOp::kNormInf,
                            ReduceOp::kNormMinusInf, ReduceOp::kAny, ReduceOp::kCountNonzero})
    for (const DType in : kDTypesOfArrays) {
      if (!contains(kInexactSet, in)) continue;
      for (const View& view : {dense({40, 40}), transposed(dense({40, 40})), dense({2, 100000}), dense({9000, 16})})
        for (const unsigned reduced : {1u, 2u, 3u}) check_default(arena, op, in, view, reduced, true);
    }
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kArgmax, ReduceOp::kVar})
    for (const DType in : {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kComplex128}) {
      if (!contains(info(op).dtypes, in)) continue;
      for (const View& view : large_views())
        for (unsigned reduced = 1; reduced < (1u << view.shape.size()); ++reduced)
          check_default(arena, op, in, view, reduced);
    }
  for (const DType in : kDTypesOfArrays)
    for (const DType accumulate : {DType::kFloat32, DType::kFloat64, DType::kComplex128, DType::kInt32}) {
      if (contains(kComplexSet, in) && accumulate != DType::kComplex128) continue;
      for (const View& view : {dense({6, 11}), transposed(dense({6, 11})), dense({3, 50000})})
        for (const unsigned reduced : {1u, 2u, 3u}) {
          check(arena, ReduceOp::kSum, in, accumulate, accumulate, view, reduced);
          if (!contains(kInexactSet, accumulate)) continue;
          check(arena, ReduceOp::kMean, in, accumulate, accumulate, view, reduced);
          check(arena, ReduceOp::kVar, in, accumulate, real_dtype(accumulate), view, reduced);
          check(arena, ReduceOp::kNorm2, in, accumulate, real_dtype(accumulate), view, reduced);
        }
    }
}

void check_scan(Arena& arena, ScanOp op, DType in, DType out, std::int64_t outer, std::int64_t n, std::int64_t inner,
                std::int64_t offset) {
  if (is_skipped(static_cast<std::size_t>(outer * n * inner) * info(in).itemsize)) return;
  const std::int64_t total = outer * n * inner, in_size = info(in).itemsize, out_size = info(out).itemsize;
  const std::vector<unsigned char> x = random_buffer(in, total + offset, 5);
  std::vector<unsigned char> want(static_cast<std::size_t>((total + offset) * out_size), 0), got = want, again = want;
  ScanArgs args =
      dense_scan(op, in, out, outer, n, inner, x.data() + offset * in_size, want.data() + offset * out_size);
  int status = host_kernels::scan(args);
  DeviceBuffer in_buffer(x.size()), out_buffer(got.size());
  in_buffer.upload(x.data());
  args.in = static_cast<char*>(in_buffer.get()) + offset * in_size;
  args.out = static_cast<char*>(out_buffer.get()) + offset * out_size;
  args.workspace = arena.workspace();
  for (std::vector<unsigned char>* result : {&got, &again}) {
    arena.reset();
    out_buffer.upload(result->data());
    status |= cuda_kernels::scan(args);
    out_buffer.download(result->data());
  }
  ++checks;
  std::string what = "scan " + std::string(info(in).name) + " to " + std::string(info(out).name) + " (" +
                     std::to_string(outer) + ", " + std::to_string(n) + ", " + std::to_string(inner) + ") at " +
                     std::to_string(offset);
  if (status != 0) return fail((what + " status " + std::to_string(status)).c_str());
  if (got != again) return fail((what + ": two runs differ").c_str());
  double largest = 1;  // sums of random signs stay far below n * 9; errors are measured against the largest seen
  for (std::int64_t i = offset; i < total + offset; ++i)
    largest = std::max(largest, std::abs(value_at(out, want.data() + i * out_size)));
  for (std::int64_t i = 0; i < total + offset; ++i) {
    const Value a = value_at(out, got.data() + i * out_size), b = value_at(out, want.data() + i * out_size);
    const bool exact = !contains(kInexactSet, out);
    const double epsilon = out == DType::kBFloat16 ? 1e-2 : out == DType::kFloat16 ? 2e-3 : 1e-5;
    if (a == b || (is_nan(a) && is_nan(b)) || (!exact && std::abs(a - b) <= epsilon * largest)) continue;
    what += " index " + std::to_string(i) + ": " + std::to_string(a.real()) + ", host " + std::to_string(b.real());
    return fail(what.c_str());
  }
}

void check_scans(Arena& arena) {
  const struct {
    std::int64_t outer, n, inner;
  } shapes[] = {{1, 1, 1},       {1, 7, 1},      {3, 5, 1},       {100, 8, 1},   {7, 300, 1}, {2, 1100, 1},
                {5000, 2000, 1}, {3, 50001, 1},  {1, 3000000, 1}, {2, 9, 4},     {3, 40, 8},  {1, 100, 3},
                {2, 3000, 16},   {1, 200000, 2}, {1, 64, 700},    {2000, 3, 300}};
  for (const auto& s : shapes)
    for (const DType in : kDTypesOfArrays) {
      const bool large = s.outer * s.n * s.inner > 1000000;
      if (large && in != DType::kFloat32 && in != DType::kInt16 && in != DType::kComplex128) continue;
      for (const std::int64_t offset : {0, 1})
        check_scan(arena, ScanOp::kSum, in, default_accumulate(ReduceOp::kSum, in), s.outer, s.n, s.inner, offset);
      if (s.n <= 40)
        check_scan(arena, ScanOp::kProd, in, default_accumulate(ReduceOp::kProd, in), s.outer, s.n, s.inner, 0);
      if (s.n <= 3000 && s.outer <= 100) {
        check_scan(arena, ScanOp::kSum, in, in, s.outer, s.n, s.inner, 0);
        check_scan(arena, ScanOp::kSum, in, DType::kComplex128, s.outer, s.n, s.inner, 0);
        if (!contains(kComplexSet, in)) check_scan(arena, ScanOp::kSum, in, DType::kFloat32, s.outer, s.n, s.inner, 0);
      }
    }
}

// 2^31 elements and more: the sum and the last position of a marked array, without a copy on the host.
void check_past_31_bits(Arena& arena) {
  const std::int64_t n = (std::int64_t{1} << 31) + 1000;
  DeviceBuffer x(static_cast<std::size_t>(n)), out(16);
  REQUIRE_CUDA(cudaMemset(x.get(), 1, static_cast<std::size_t>(n)));
  REQUIRE_CUDA(cudaMemset(static_cast<char*>(x.get()) + n - 5, 9, 1));
  for (const auto& [op, want] : {std::pair{ReduceOp::kSum, n + 8}, std::pair{ReduceOp::kArgmax, n - 5}})
    for (const View& view : {dense({n}), transposed(dense({n / 8, 8}))}) {
      ReduceArgs args = make_args(op, DType::kInt8, DType::kInt64, DType::kInt64, view, view.shape.size() == 1 ? 1 : 3);
      if (view.shape.size() == 2 && op == ReduceOp::kArgmax) continue;
      args.in = x.get();
      args.out = out.get();
      args.workspace = arena.workspace();
      arena.reset();
      std::int64_t got[2] = {};
      const int status = cuda_kernels::reduce(args);
      out.download(got);
      ++checks;
      if (status != 0 || got[0] != want) fail((std::string(info(op).name) + " past 2^31 elements").c_str());
    }
}

void bench_reduce(Arena& arena, const DeviceBuffer& x, const DeviceBuffer& out, ReduceOp op, DType in,
                  const Dims& shape, unsigned reduced, const char* note = "") {
  const View view = dense(shape);
  ReduceArgs args = make_args(op, in, default_accumulate(op, in), default_out(op, in), view, reduced);
  args.in = x.get();
  args.out = out.get();
  args.workspace = arena.workspace();
  const std::string row = std::string(info(op).name) + " " + std::string(info(in).name) + " " + view.id + " axes " +
                          std::to_string(reduced) + note;
  report(row.c_str(), static_cast<double>(view.size()) * info(in).itemsize,
         time_ms(arena, [&] { return cuda_kernels::reduce(args); }));
}

void bench(Arena& arena) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  DeviceBuffer x(kBytes), y(2 * kBytes);
  REQUIRE_CUDA(cudaMemset(x.get(), 0, kBytes));
  constexpr DType f32 = DType::kFloat32;
  const std::int64_t n = std::int64_t{1} << 28;
  report("device copy (read + write)", 2.0 * kBytes, time_ms(arena, [&] {
           return static_cast<int>(cudaMemcpyAsync(y.get(), x.get(), kBytes, cudaMemcpyDeviceToDevice, nullptr));
         }));
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kArgmax, ReduceOp::kNorm2, ReduceOp::kVar,
                            ReduceOp::kMean, ReduceOp::kAny})
    bench_reduce(arena, x, y, op, f32, {n}, 1);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kArgmax, ReduceOp::kVar}) {
    bench_reduce(arena, x, y, op, f32, {16384, 16384}, 1);
    bench_reduce(arena, x, y, op, f32, {16384, 16384}, 2);
    bench_reduce(arena, x, y, op, f32, {32768, 32}, 1);
    bench_reduce(arena, x, y, op, f32, {1000000, 8}, 1);
    bench_reduce(arena, x, y, op, f32, {1000000, 8}, 2);
    bench_reduce(arena, x, y, op, f32, {8, 1000000}, 2);
    bench_reduce(arena, x, y, op, f32, {8, 1000000}, 1);
    bench_reduce(arena, x, y, op, f32, {512, 512, 1024}, 2);
    bench_reduce(arena, x, y, op, f32, {512, 512, 1024}, 5);
  }
  for (const std::int64_t columns : {2, 3, 4, 7, 8, 16, 33, 100, 128, 1000, 4096}) {
    bench_reduce(arena, x, y, ReduceOp::kSum, f32, {n / columns, columns}, 1);
    bench_reduce(arena, x, y, ReduceOp::kSum, f32, {n / columns, columns}, 2);
  }
  for (const DType in : kDTypesOfArrays) {
    const std::int64_t side = in == DType::kComplex128 ? 8192 : 16384;
    const std::int64_t rows = static_cast<std::int64_t>(kBytes) / info(in).itemsize / side;
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kArgmax})
      for (const unsigned reduced : {3u, 1u, 2u}) bench_reduce(arena, x, y, op, in, {rows, side}, reduced);
  }
  bench_reduce(arena, x, y, ReduceOp::kSum, f32, {1000}, 1, " small");
  const struct {
    DType in, out;
    std::int64_t outer, n, inner;
  } scans[] = {{f32, f32, 1, n, 1},
               {f32, f32, 16384, 16384, 1},
               {f32, f32, n / 1000, 1000, 1},
               {f32, f32, n / 8, 8, 1},
               {f32, f32, 1, 16384, 16384},
               {f32, f32, 512, 512, 1024},
               {f32, f32, 1, n / 8, 8},
               {f32, f32, 16, n / 16, 1},
               {DType::kInt32, DType::kInt64, 1, n / 2, 1},
               {DType::kFloat64, DType::kFloat64, 1, n / 2, 1},
               {DType::kFloat16, DType::kFloat16, 1, n, 1}};
  for (const auto& s : scans) {
    ScanArgs args = dense_scan(ScanOp::kSum, s.in, s.out, s.outer, s.n, s.inner, x.get(), y.get());
    args.workspace = arena.workspace();
    const std::string row = "cumsum " + std::string(info(s.in).name) + " (" + std::to_string(s.outer) + ", " +
                            std::to_string(s.n) + ", " + std::to_string(s.inner) + ")";
    report(row.c_str(), static_cast<double>(s.outer * s.n * s.inner) * (info(s.in).itemsize + info(s.out).itemsize),
           time_ms(arena, [&] { return cuda_kernels::scan(args); }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  small = has_option(argc, argv, "--small");
  Arena arena(std::size_t{small ? 1 : 2} << (small ? 26 : 30));
  check_reductions(arena);
  check_scans(arena);
  if (!small) check_past_31_bits(arena);
  std::printf("%ld checks, %d failures\n", checks, failures);
  if (failures == 0 && has_option(argc, argv, "--bench")) bench(arena);
  return failures != 0;
}
