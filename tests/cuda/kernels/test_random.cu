// Random numbers of the device against the host's: uniforms and integers to the bit, the others within rounding.
#include <cmath>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/random/multinomial.h"
#include "tests/cpp/nd/distributions.h"
#include "tests/cuda/kernels/device_check.cuh"

namespace dlbridge::nd {
namespace {

using namespace testing;

RandomArgs request(Distribution distribution, DType dtype, std::int64_t n) {
  RandomArgs args{};
  args.distribution = distribution;
  args.dtype = dtype;
  args.n = n;
  args.seed = 0xfeedface12345678;
  args.offset = 0xfffffffe;  // the counter's carry
  args.a = distribution == Distribution::kExponential ? 2 : 0.25;
  args.b = 3;
  args.c = 7;
  args.stream = kLegacyStream;
  return args;
}

// As doubles, or the bytes of integers.
std::vector<double> numbers(const Bytes& bytes, DType dtype) {
  std::vector<double> out;
  visit_dtype<kFloatSet>(
      dtype,
      [&]<class T>() {
        for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
          T v;
          std::memcpy(&v, bytes.data() + i, sizeof v);
          out.push_back(cast<double>(v));
        }
        return 0;
      },
      0);
  return out;
}

double precision(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return 0x1p-10;
    case DType::kBFloat16: return 0x1p-7;
    case DType::kFloat32: return 0x1p-20;
    default: return 0x1p-50;
  }
}

// Counts whose acceptance, or whose gamma variate, the last digit of a logarithm decides: next to none.
bool nearly_equal(const Bytes& a, const Bytes& b) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.size(); i += 8) different += std::memcmp(&a[i], &b[i], 8) != 0;
  return different <= a.size() / 8 / 10000;
}

void compare(RandomArgs args, std::size_t offset) {
  const std::size_t itemsize = info(args.dtype).itemsize;
  Bytes wanted(static_cast<std::size_t>(args.n) * itemsize);
  const DeviceBytes out(wanted.size(), offset * itemsize);
  args.out = wanted.data();
  DEVICE_CHECK(host_kernels::random(args) == 0);
  args.out = out.data();
  DEVICE_CHECK(cuda_kernels::random(args) == 0);
  const Bytes got = out.get();
  const std::string detail = std::string(info(args.dtype).name) + " distribution " +
                             std::to_string(static_cast<int>(args.distribution)) + " n " + std::to_string(args.n);
  if (args.distribution == Distribution::kUniform || args.distribution == Distribution::kInteger) {
    DEVICE_CHECK(got == wanted, detail);
    return;
  }
  if (gives_counts(args.distribution)) {
    DEVICE_CHECK(nearly_equal(got, wanted), detail + " of " + std::to_string(args.a));
    return;
  }
  const std::vector<double> a = numbers(got, args.dtype), b = numbers(wanted, args.dtype);
  // What is made by rejection is accepted by the last digit of a logarithm, too.
  std::size_t pardoned = args.distribution >= Distribution::kGamma ? a.size() / 10000 : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    // The tangent's slope, by which the last digit of its argument counts, is the square of its value.
    const double steep = args.distribution == Distribution::kCauchy ? 1 + std::fabs(b[i]) : 64;
    const double most = precision(args.dtype) * steep * std::max(std::fabs(b[i]), args.b);
    const bool alike = a[i] == b[i] || std::fabs(a[i] - b[i]) <= most;
    if (!alike && pardoned > 0) --pardoned;
    else if (!DEVICE_CHECK(alike, detail)) return;
  }
}

// Of a number, and of numbers around it in an array.
void compare_counts(Distribution d, double a, std::int64_t n, std::size_t offset, double b = 3, double c = 0) {
  RandomArgs args = request(d, DType::kInt64, n);
  args.a = a, args.b = b, args.c = c;
  compare(args, offset);
  std::vector<double> parameters;
  for (std::int64_t i = 0; i < n; ++i) parameters.push_back(a * (1 + static_cast<double>(i % 16) / 16));
  const DeviceBytes there(parameters.data(), parameters.size() * sizeof(double));
  Bytes wanted(parameters.size() * 8);
  const DeviceBytes out(wanted.size(), offset * 8);
  args.arrays[0] = parameters.data();
  args.out = wanted.data();
  DEVICE_CHECK(host_kernels::random(args) == 0);
  args.arrays[0] = there.as<const double>();
  args.out = out.data();
  DEVICE_CHECK(cuda_kernels::random(args) == 0);
  DEVICE_CHECK(nearly_equal(out.get(), wanted), "array of counts around " + std::to_string(a));
}

void compare_multinomial(std::int64_t outcomes, double trials, std::int64_t rows) {
  const std::vector<double> chances(static_cast<std::size_t>(outcomes), 1.0 / static_cast<double>(outcomes));
  const DeviceBytes there(chances.data(), chances.size() * sizeof(double));
  Bytes wanted(static_cast<std::size_t>(rows * outcomes) * 8);
  const DeviceBytes out(wanted.size());
  MultinomialArgs args{};
  args.rows = rows;
  args.outcomes = outcomes;
  args.trials = trials;
  args.seed = 0xfeedface12345678;
  args.offset = 0xfffffffe;
  args.stream = kLegacyStream;
  args.chances = chances.data();
  args.out = reinterpret_cast<std::int64_t*>(wanted.data());
  DEVICE_CHECK(host_kernels::multinomial(args) == 0);
  args.chances = there.as<const double>();
  args.out = out.as<std::int64_t>();
  DEVICE_CHECK(cuda_kernels::multinomial(args) == 0);
  const std::string detail = std::to_string(outcomes) + " outcomes of " + std::to_string(trials) + " trials";
  if (philox::trial_by_trial(args)) DEVICE_CHECK(out.get() == wanted, detail);
  else DEVICE_CHECK(nearly_equal(out.get(), wanted), detail);
}

void compare_all() {
  const DType floats[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
  const DType integers[] = {DType::kBool,  DType::kInt8,   DType::kInt16,  DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64};
  for (const std::int64_t n : {1, 3, 7, 8, 513, 70001})
    for (const std::size_t offset : {0, 1}) {
      for (const DType dtype : floats)
        for (const auto d : distributions(false)) compare(request(d, dtype, n), offset);
      for (const DType dtype : floats) {
        RandomArgs args = request(Distribution::kUniform, dtype, n);
        args.a = 0, args.b = 1;
        compare(args, offset);
      }
      for (const double a : {0.25, 5.0, 9.0, 300.0, 1e12, 0x1p61}) compare_counts(Distribution::kPoisson, a, n, offset);
      for (const double a : {0.25, 3.0, 5000.0}) compare_counts(Distribution::kNegativeBinomial, a, n, offset);
      for (const double a : {1.5, 2.0, 3.0, 1e300}) compare_counts(Distribution::kZipf, a, n, offset);
      for (const double a : {1e-9, 0.3, 0.5}) compare_counts(Distribution::kGeometric, a, n, offset);
      for (const double a : {0.01, 0.5}) compare_counts(Distribution::kLogseries, a, n, offset);
      for (const double a : {9.0, 400.0, 1e12}) {
        compare_counts(Distribution::kBinomial, a, n, offset, 0.3);
        compare_counts(Distribution::kHypergeometric, a, n, offset, 2 * a, a / 2);
      }
      for (const double trials : {1.0, 5.0, 20.0, 1000.0})
        for (const std::int64_t outcomes : {1, 3, 8, 20}) compare_multinomial(outcomes, trials, n);
      for (const DType dtype : integers) {
        RandomArgs args = request(Distribution::kInteger, dtype, n);
        const bool wide = info(dtype).itemsize == 8;
        for (const std::uint64_t range :
             {std::uint64_t{2}, std::uint64_t{100}, std::uint64_t{3} << (wide ? 62 : 30), std::uint64_t{0}}) {
          if (dtype == DType::kBool && range > 2) continue;
          args.int_low = dtype == DType::kBool ? 0 : -3;
          args.int_range = range;
          compare(args, offset);
        }
      }
    }
}

void bench_one(const char* name, Distribution distribution, DType dtype, std::uint64_t range = 0) {
  const std::size_t bytes = std::size_t{1} << 30;
  const DeviceBytes out(bytes);
  RandomArgs args = request(distribution, dtype, static_cast<std::int64_t>(bytes / info(dtype).itemsize));
  args.out = out.data();
  args.int_range = range;
  if (gives_counts(distribution)) args.a = distribution == Distribution::kPoisson ? 40 : 3;
  if (distribution == Distribution::kGeometric || distribution == Distribution::kLogseries) args.a = 0.3;
  bench(name, static_cast<double>(bytes), [&] { DEVICE_CHECK(cuda_kernels::random(args) == 0); });
}

void bench_all() {
  const std::size_t bytes = std::size_t{1} << 30;
  const DeviceBytes out(bytes);
  bench("memset", static_cast<double>(bytes),
        [&] { CUDA_OK(cudaMemsetAsync(out.data(), 1, bytes, cudaStreamLegacy)); });
  bench_one("normal float32 (randn)", Distribution::kNormal, DType::kFloat32);
  bench_one("normal float64", Distribution::kNormal, DType::kFloat64);
  bench_one("normal float16", Distribution::kNormal, DType::kFloat16);
  bench_one("uniform float32 (rand)", Distribution::kUniform, DType::kFloat32);
  bench_one("uniform float64", Distribution::kUniform, DType::kFloat64);
  bench_one("uniform bfloat16", Distribution::kUniform, DType::kBFloat16);
  bench_one("exponential float32", Distribution::kExponential, DType::kFloat32);
  bench_one("laplace float64", Distribution::kLaplace, DType::kFloat64);
  bench_one("gumbel float32", Distribution::kGumbel, DType::kFloat32);
  bench_one("cauchy float32", Distribution::kCauchy, DType::kFloat32);
  bench_one("gamma float64, shape 0.25", Distribution::kGamma, DType::kFloat64);
  bench_one("gamma float32, shape 0.25", Distribution::kGamma, DType::kFloat32);
  bench_one("poisson int64, mean 40", Distribution::kPoisson, DType::kInt64);
  bench_one("negative binomial int64, 3 of gamma variates times 3", Distribution::kNegativeBinomial, DType::kInt64);
  bench_one("zipf int64, 3", Distribution::kZipf, DType::kInt64);
  bench_one("geometric int64, 0.3", Distribution::kGeometric, DType::kInt64);
  bench_one("logseries int64, 0.3", Distribution::kLogseries, DType::kInt64);
  bench_one("beta float64, 0.25 and 3", Distribution::kBeta, DType::kFloat64);
  bench_one("F float64, 0.25 and 3", Distribution::kF, DType::kFloat64);
  bench_one("t float64, 0.25", Distribution::kStandardT, DType::kFloat64);
  bench_one("wald float64", Distribution::kWald, DType::kFloat64);
  bench_one("von Mises float64", Distribution::kVonMises, DType::kFloat64);
  bench_one("integers int64 below 100", Distribution::kInteger, DType::kInt64, 100);
  bench_one("integers int32 below 100", Distribution::kInteger, DType::kInt32, 100);
  bench_one("integers uint8 below 100", Distribution::kInteger, DType::kUInt8, 100);
  bench_one("integers int64 below 3 * 2^62 (rejects)", Distribution::kInteger, DType::kInt64, std::uint64_t{3} << 62);
}

}  // namespace
}  // namespace dlbridge::nd

int main(int argc, char** argv) {
  using namespace dlbridge::nd;
  compare_all();
  const int rc = testing::report();
  if (rc == 0 && testing::has_option(argc, argv, "--bench")) bench_all();
  return rc;
}
