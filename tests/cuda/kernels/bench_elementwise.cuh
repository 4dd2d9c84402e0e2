// The speed of the elementwise kernels: included by test_elementwise.cu. Bytes are those that a perfect kernel would
// move: every 32-byte sector of an input that holds an element, once, and the output.

#pragma once

namespace {

constexpr std::int64_t kBytes = std::int64_t{1} << 30;
unsigned char* bench_memory[kMaxOperands];

ElementwiseArgs bench_args(Op op, DType compute, std::vector<std::int64_t> shape,
                           std::vector<std::vector<std::int64_t>> strides) {
  ElementwiseArgs args{};
  args.op = op;
  args.stream = kLegacyStream;
  args.compute = compute;
  args.operands = static_cast<std::uint8_t>(info(op).operands + 1);
  args.ndim = static_cast<int>(shape.size());
  args.size = 1;
  for (int d = 0; d < args.ndim; ++d) {
    args.shape[d] = shape[static_cast<std::size_t>(d)];
    args.size *= args.shape[d];
  }
  for (int k = 0; k < args.operands; ++k) {
    args.dtype[k] = k == 0 ? result_dtype(info(op).rule, compute) : op == Op::kWhere && k == 1 ? DType::kBool : compute;
    args.data[k] = bench_memory[k];
    for (int d = 0; d < args.ndim; ++d)
      args.strides[k][d] =
          strides[static_cast<std::size_t>(k)][static_cast<std::size_t>(d)] * info(args.dtype[k]).itemsize;
  }
  return args;
}

// After a change of dtype[k], elements stay `elements` strides apart.
void set_dtype(ElementwiseArgs& args, int k, DType dtype) {
  for (int d = 0; d < args.ndim; ++d)
    args.strides[k][d] = args.strides[k][d] / info(args.dtype[k]).itemsize * info(dtype).itemsize;
  args.dtype[k] = dtype;
}

// Bytes of the sectors that an operand touches.
double touched_bytes(const ElementwiseArgs& args, int k) {
  if ((args.scalar_mask >> k & 1) != 0) return 0;
  double elements = 1;
  std::int64_t least = 32;
  for (int d = 0; d < args.ndim; ++d) {
    const std::int64_t stride = std::abs(args.strides[k][d]);
    if (stride == 0) continue;
    elements *= static_cast<double>(args.shape[d]);
    least = std::min(least, stride);
  }
  return elements * static_cast<double>(std::max<std::int64_t>(least, info(args.dtype[k]).itemsize));
}

void report(const char* name, const ElementwiseArgs& args) {
  double bytes = 0;
  for (int k = 0; k < args.operands; ++k) bytes += touched_bytes(args, k);
  testing::bench(name, bytes, [&args] { failures += cuda_kernels::elementwise(args) != 0; });
}

void run_benchmarks() {
  for (auto& memory : bench_memory) {
    CUDA_OK(cudaMalloc(&memory, static_cast<std::size_t>(2 * kBytes + 4096)));
    CUDA_OK(cudaMemset(memory, 0, static_cast<std::size_t>(2 * kBytes + 4096)));
  }
  constexpr DType f16 = DType::kFloat16, f32 = DType::kFloat32, f64 = DType::kFloat64, u8 = DType::kUInt8;
  const std::int64_t n = kBytes / 4, side = 16384;
  const auto flat = [](Op op, DType t, std::int64_t count) { return bench_args(op, t, {count}, {{1}, {1}, {1}, {1}}); };
  testing::bench("device copy (the limit)", 2.0 * static_cast<double>(kBytes), [] {
    CUDA_OK(cudaMemcpyAsync(bench_memory[0], bench_memory[1], static_cast<std::size_t>(kBytes),
                            cudaMemcpyDeviceToDevice, cudaStreamLegacy));
  });
  report("copy float32", flat(Op::kPositive, f32, n));
  report("add float32", flat(Op::kAdd, f32, n));
  report("exp float32", flat(Op::kExp, f32, n));
  report("add float16", flat(Op::kAdd, f16, 2 * n));
  report("exp float16", flat(Op::kExp, f16, 2 * n));
  report("add float64", flat(Op::kAdd, f64, n / 2));
  report("exp float64", flat(Op::kExp, f64, n / 2));
  report("add uint8", flat(Op::kAdd, u8, 4 * n));
  report("multiply complex64", flat(Op::kMultiply, DType::kComplex64, n / 2));
  report("add complex128", flat(Op::kAdd, DType::kComplex128, n / 4));
  report("less float32", flat(Op::kLess, f32, n));
  report("where float32", flat(Op::kWhere, f32, n));
  report("clip float32", flat(Op::kClip, f32, n));
  report("sin float32", flat(Op::kSin, f32, n));
  report("tanh float32", flat(Op::kTanh, f32, n));
  report("power float32", flat(Op::kPower, f32, n));
  report("floor_divide int32", flat(Op::kFloorDivide, DType::kInt32, n));
  report("floor_divide float32", flat(Op::kFloorDivide, f32, n));
  report("arctan float64", flat(Op::kArctan, f64, n / 2));
  report("exp complex64", flat(Op::kExp, DType::kComplex64, n / 2));

  ElementwiseArgs args = flat(Op::kPositive, f64, n);
  set_dtype(args, 1, f32);
  report("astype float32 to float64", args);
  args = flat(Op::kPositive, f32, n);
  set_dtype(args, 1, f64);
  report("astype float64 to float32", args);
  args = flat(Op::kPositive, f32, n);
  set_dtype(args, 1, f16);
  report("astype float16 to float32", args);
  args = flat(Op::kPositive, f32, n);
  set_dtype(args, 1, u8);
  report("astype uint8 to float32", args);
  args = flat(Op::kAdd, f32, n);
  set_dtype(args, 2, f16);
  report("add float32 + float16", args);
  args = flat(Op::kAdd, f64, n / 2);
  set_dtype(args, 1, DType::kInt32);
  set_dtype(args, 2, f32);
  report("add int32 + float32 in float64", args);
  args = flat(Op::kAdd, f32, n);
  args.scalar_mask = 4;
  report("add float32 + scalar", args);
  args = flat(Op::kPositive, f32, n);
  args.scalar_mask = 2;
  report("fill float32", args);
  for (DType t : {u8, f16, f32, f64}) {
    args = flat(Op::kAdd, t, kBytes / info(t).itemsize - 8);
    args.data[1] = bench_memory[1] + info(t).itemsize;
    report((std::string("add ") + std::string(info(t).name) + ", one input unaligned").c_str(), args);
  }
  args = flat(Op::kPositive, f32, n - 8);
  args.data[1] = bench_memory[1] + 4;
  report("copy float32, unaligned", args);

  report("add float32 + row (16384,)", bench_args(Op::kAdd, f32, {side, side}, {{1, side}, {1, side}, {1, 0}}));
  report("add float32 + column (16384, 1)", bench_args(Op::kAdd, f32, {side, side}, {{1, side}, {1, side}, {0, 1}}));
  report("add float32 + row (16383,)",
         bench_args(Op::kAdd, f32, {side - 1, side}, {{1, side - 1}, {1, side - 1}, {1, 0}}));
  report("add (3e7, 3) + row (3,)", bench_args(Op::kAdd, f32, {3, 30000000}, {{1, 3}, {1, 3}, {1, 0}}));
  report("add (3e7, 3) + column (3e7, 1)", bench_args(Op::kAdd, f32, {3, 30000000}, {{1, 3}, {1, 3}, {0, 1}}));
  report("add rows with a pitch", bench_args(Op::kAdd, f32, {side - 16, side}, {{1, side - 16}, {1, side}, {1, side}}));
  report("add uint8 rows with a pitch",
         bench_args(Op::kAdd, u8, {2 * side - 3, 2 * side}, {{1, 2 * side - 3}, {1, 2 * side}, {1, 2 * side}}));
  report("add float32 [::2]", bench_args(Op::kAdd, f32, {n / 2}, {{1}, {2}, {2}}));
  report("add float16 [::2]", bench_args(Op::kAdd, f16, {n}, {{1}, {2}, {2}}));
  report("add float32 [::-1]", [&] {
    ElementwiseArgs reversed = bench_args(Op::kAdd, f32, {n}, {{1}, {-1}, {1}});
    reversed.data[1] = bench_memory[1] + (n - 1) * 4;
    return reversed;
  }());
  report("add a + b.T float32", bench_args(Op::kAdd, f32, {side, side}, {{1, side}, {1, side}, {side, 1}}));

  for (DType t : {u8, f16, f32, f64, DType::kComplex128}) {
    const std::int64_t edge = t == u8 ? 2 * side : t == DType::kComplex128 ? side / 2 : side;
    const std::string name = "transposed copy " + std::string(info(t).name);
    report(name.c_str(), bench_args(Op::kPositive, t, {edge, edge}, {{1, edge}, {edge, 1}}));
    report((name + ", odd extents").c_str(),
           bench_args(Op::kPositive, t, {edge - 1, edge - 3}, {{1, edge - 1}, {edge - 3, 1}}));
  }
  const std::int64_t a = 256, b = 1024, c = 1024;
  report("permute (256,1024,1024) to (2,1,0)",
         bench_args(Op::kPositive, f32, {a, b, c}, {{1, a, a * b}, {b * c, c, 1}}));
  report("permute (256,1024,1024) to (0,2,1)",
         bench_args(Op::kPositive, f32, {b, c, a}, {{1, b, b * c}, {c, 1, b * c}}));
  report("permute (256,1024,1024) to (1,0,2)",
         bench_args(Op::kPositive, f32, {c, a, b}, {{1, c, a * c}, {1, b * c, c}}));
  report("permute (8192,8192,3) to (2,0,1)",
         bench_args(Op::kPositive, f32, {8192, 8192, 3}, {{1, 8192, 8192 * 8192}, {3, 3 * 8192, 1}}));
  report("permute (3,8192,8192) to (1,2,0)",
         bench_args(Op::kPositive, f32, {3, 8192, 8192}, {{1, 3, 3 * 8192}, {8192 * 8192, 1, 8192}}));
  report("permute (8192,8192,3) to (1,0,2)",
         bench_args(Op::kPositive, f32, {3, 8192, 8192}, {{1, 3, 3 * 8192}, {1, 3 * 8192, 3}}));
  args = bench_args(Op::kPositive, f64, {side, side}, {{1, side}, {side, 1}});
  set_dtype(args, 1, f32);
  report("transposed astype float32 to float64", args);

  RangeArgs range{};
  range.dtype = f32;
  range.n = n;
  range.out = bench_memory[0];
  range.step = 0.5;
  testing::bench("arange float32", static_cast<double>(kBytes), [&] { failures += cuda_kernels::range(range) != 0; });
  for (auto* memory : bench_memory) CUDA_OK(cudaFree(memory));
}

}  // namespace
