// The random kernel of the host: Philox against its published vectors, the counters, and each distribution against a
// plain evaluation of the same words or against its moments.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/philox_lanes.h"
#include "ndarray/kernels/random/counts.h"
#include "ndarray/kernels/random/multinomial.h"
#include "tests/cpp/nd/distributions.h"

namespace dlbridge::nd {
namespace {

using testing::distributions;

constexpr std::uint64_t kSeed = 0x123456789abcdef0;

RandomArgs request(Distribution distribution, DType dtype, std::int64_t n, void* out) {
  RandomArgs args{};
  args.distribution = distribution;
  args.dtype = dtype;
  args.n = n;
  args.out = out;
  args.seed = kSeed;
  args.offset = 5;
  args.b = 1;
  args.a = distribution == Distribution::kExponential || distribution >= Distribution::kGamma ? 1 : 0;
  return args;
}

template <class T>
std::vector<T> draw(RandomArgs args, std::int64_t n) {
  std::vector<T> out(static_cast<std::size_t>(n));
  args.dtype = dtype_of_native<T>::value;
  args.n = n;
  args.out = out.data();
  EXPECT_EQ(host_kernels::random(args), 0);
  return out;
}

TEST(Philox, gives_the_same_blocks_by_every_way_that_the_processor_has) {
  const philox::Keys keys = philox::make_keys(kSeed);
  const host_kernels::Generators found = host_kernels::find_generators();
  for (int way = 0; way < found.count; ++way)
    for (const std::uint64_t counter : {std::uint64_t{0}, std::uint64_t{0xfffffff0}, ~std::uint64_t{0} - 7}) {
      host_kernels::Lanes lanes;
      found.ways[way](keys, counter, lanes);
      for (int i = 0; i < host_kernels::kLanes; ++i) {
        const philox::Block want = philox::generate(keys, counter + static_cast<std::uint64_t>(i), 0);
        const philox::Block got = lanes.block(i);
        for (int word = 0; word < 4; ++word) EXPECT_EQ(got.word[word], want.word[word]);
      }
    }
}

TEST(Philox, gives_the_published_vectors) {
  // Random123's kat_vectors, philox4x32 10.
  const philox::Block zero = philox::generate(philox::make_keys(0), 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  const philox::Block ones = philox::generate(philox::make_keys(~0ull), ~0ull, ~0ull);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
  const philox::Block pi =
      philox::generate(philox::make_keys(0x299f31d0a4093822ull), 0x85a308d3243f6a88ull, 0x0370734413198a2eull);
  EXPECT_EQ(pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(pi.word[1], 0x94fdccebu);
  EXPECT_EQ(pi.word[2], 0x5001e420u);
  EXPECT_EQ(pi.word[3], 0x24126ea1u);
}

template <class T>
void expect_unit_is_uniform() {
  const RandomArgs args = request(Distribution::kUniform, dtype_of_native<T>::value, 4, nullptr);  // [0, 1)
  ASSERT_TRUE(philox::Unit<T>::serves(args));
  const auto uniform = philox::Uniform<T>::make(args);
  const auto unit = philox::Unit<T>::make(args);
  const philox::Keys keys = philox::make_keys(kSeed);
  for (std::uint32_t i = 0; i < 20000; ++i) {
    philox::Block block = philox::generate(keys, i);
    if (i == 0) block = {{~0u, ~0u, ~0u, ~0u}};  // the largest
    if (i == 1) block = {{0, 0, 0, 0}};
    T a[philox::Unit<T>::kCount], b[philox::Unit<T>::kCount];
    uniform(block, keys, i, a);
    unit(block, keys, i, b);
    ASSERT_EQ(std::memcmp(a, b, sizeof a), 0) << i;
  }
}

TEST(Philox, the_unit_interval_has_the_numbers_of_any_other) {
  expect_unit_is_uniform<float>();
  expect_unit_is_uniform<double>();
  expect_unit_is_uniform<float16>();
  expect_unit_is_uniform<bfloat16>();
}

TEST(Philox, counts_the_counters_that_a_call_takes) {
  using philox::counters_used;
  static_assert(counters_used(Distribution::kUniform, DType::kFloat32, 5) == 2);
  static_assert(counters_used(Distribution::kNormal, DType::kFloat64, 5) == 3);
  static_assert(counters_used(Distribution::kInteger, DType::kInt64, 1) == 1);
  static_assert(counters_used(Distribution::kInteger, DType::kInt8, 0) == 0);
  static_assert(counters_used(Distribution::kLaplace, DType::kFloat32, 5) == 3);
  static_assert(counters_used(Distribution::kLogGamma, DType::kFloat16, 5) == 5);
  static_assert(counters_used(Distribution::kZipf, DType::kInt64, 5) == 5);
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (auto d : {Distribution::kUniform, Distribution::kNormal, Distribution::kExponential, Distribution::kGumbel,
                   Distribution::kGamma}) {
      // Two calls, the second where the first ended, are one call.
      const std::int64_t n = 1000, k = philox::elements_per_counter(d, dtype), first = 37 * k;
      const auto itemsize = static_cast<std::int64_t>(info(dtype).itemsize);
      std::vector<unsigned char> whole(static_cast<std::size_t>(n * itemsize)), parts(whole.size());
      RandomArgs args = request(d, dtype, n, whole.data());
      ASSERT_EQ(host_kernels::random(args), 0);
      args.out = parts.data();
      args.n = first;
      ASSERT_EQ(host_kernels::random(args), 0);
      args.out = parts.data() + first * itemsize;
      args.offset += counters_used(d, dtype, first);
      args.n = n - first;
      ASSERT_EQ(host_kernels::random(args), 0);
      EXPECT_EQ(whole, parts);
    }
  }
}

TEST(Random, normal_is_box_muller_of_the_words) {
  constexpr double kPi = 3.14159265358979323846;
  const std::int64_t n = 40000;
  RandomArgs args = request(Distribution::kNormal, DType::kFloat32, n, nullptr);
  args.a = 0.5;
  args.b = 3;
  const std::vector<float> singles = draw<float>(args, n);
  const std::vector<double> doubles = draw<double>(args, n);
  const philox::Keys keys = philox::make_keys(kSeed);
  const auto rotated = [](double angle, std::uint64_t quadrant) {
    double c = std::cos(angle), s = std::sin(angle);
    if (quadrant & 2) c = -c;
    if (quadrant & 1) std::swap(c, s);
    return std::array{c, s};
  };
  for (std::int64_t i = 0; i < n; i += 2) {
    const std::uint64_t counter = 5 + static_cast<std::uint64_t>(i) / 4;
    const philox::Block block = philox::generate(keys, counter);
    const std::uint32_t* word = block.word + i % 4;
    const double v = static_cast<float>(word[0]) * 0x1p-32 + 0x1p-33;
    const double angle = static_cast<std::int32_t>(word[1] << 2) * (kPi / 4 * 0x1p-31);
    const auto point = rotated(angle, word[1] >> 30);
    const double radius = 3 * std::sqrt(-2 * std::log(v));
    for (std::size_t j = 0; j < 2; ++j)
      ASSERT_NEAR(singles[static_cast<std::size_t>(i) + j], 0.5 + radius * point[j], 3e-6) << i;

    const philox::Block b = philox::generate(keys, 5 + static_cast<std::uint64_t>(i) / 2);
    const std::uint64_t w = philox::word64(b, 1);
    const auto point64 = rotated(static_cast<double>(static_cast<std::int64_t>(w << 2)) * (kPi / 4 * 0x1p-63), w >> 62);
    const double r = 3 * std::sqrt(-2 * std::log(static_cast<double>((philox::word64(b, 0) >> 11) + 1) * 0x1p-53));
    for (std::size_t j = 0; j < 2; ++j)
      ASSERT_NEAR(doubles[static_cast<std::size_t>(i) + j], 0.5 + r * point64[j], 1e-13) << i;
  }
}

// Mean, variance, skewness and excess kurtosis of n draws lie within 5 standard errors of the distribution's.
template <class T>
void expect_moments(Distribution d, double mean, double variance, double third, double fourth) {
  const std::int64_t n = 1 << 19;
  const std::vector<T> x = draw<T>(request(d, DType::kFloat32, n, nullptr), n);
  double m = 0, m2 = 0, m3 = 0;
  for (T v : x) m += cast<double>(v);
  m /= static_cast<double>(n);
  for (T v : x) {
    const double e = cast<double>(v) - mean;
    m2 += e * e;
    m3 += e * e * e;
  }
  const double root = std::sqrt(static_cast<double>(n));
  // bfloat16 truncates uniforms to 8 bits: half a step of each, 2^-9 of the value, is missing from the mean.
  const double truncation = is_half_v<T> && d == Distribution::kUniform ? 0x1p-8 : 0x1p-11;
  EXPECT_NEAR(m, mean, 5 * std::sqrt(variance) / root + truncation);
  EXPECT_NEAR(m2 / static_cast<double>(n), variance, 5 * std::sqrt(fourth - variance * variance) / root + truncation);
  EXPECT_NEAR(m3 / static_cast<double>(n), third, 0.05 + truncation);
}

TEST(Random, moments_are_those_of_the_distribution) {
  const auto all = []<class T>() {
    expect_moments<T>(Distribution::kUniform, 0.5, 1.0 / 12, 0, 1.0 / 80);
    expect_moments<T>(Distribution::kNormal, 0, 1, 0, 3);
    expect_moments<T>(Distribution::kExponential, 1, 1, 2, 9);
    expect_moments<T>(Distribution::kGamma, 1, 1, 2, 9);  // of shape 1
  };
  all.operator()<float16>();
  all.operator()<bfloat16>();
  all.operator()<float>();
  all.operator()<double>();
}

template <class T>
void expect_uniform_stays_inside(double low, double high) {
  RandomArgs args = request(Distribution::kUniform, DType::kFloat32, 0, nullptr);
  args.a = low;
  args.b = high;
  const double a = cast<double>(cast<T>(low)), b = cast<double>(cast<T>(high));
  double least = INFINITY, most = -INFINITY;
  for (T v : draw<T>(args, 20000)) {
    const double x = cast<double>(v);
    least = std::min(least, x);
    most = std::max(most, x);
  }
  if (a == b) {
    EXPECT_EQ(least, a);
    EXPECT_EQ(most, a);
  } else if (a < b) {
    EXPECT_GE(least, a);
    EXPECT_LT(most, b);
  } else {
    EXPECT_LE(most, a);
    EXPECT_GT(least, b);
  }
}

TEST(Random, uniform_never_returns_its_upper_end) {
  const auto all = []<class T>() {
    const double step = std::is_same_v<T, double> ? 0x1p-52 : std::is_same_v<T, float> ? 0x1p-23 : 0x1p-7;
    for (const auto& [low, high] : std::vector<std::pair<double, double>>{
             {0, 1}, {1, 1 + step}, {1, 1 + 2 * step}, {-1, 0}, {-3, 5}, {1000, 1001}, {0.1, 0.1}, {2, -2}, {0, 1e-7}})
      expect_uniform_stays_inside<T>(low, high);
  };
  all.operator()<float16>();
  all.operator()<bfloat16>();
  all.operator()<float>();
  all.operator()<double>();
}

template <class T>
std::vector<T> integers(std::int64_t low, std::uint64_t range, std::int64_t n) {
  RandomArgs args = request(Distribution::kInteger, DType::kInt64, n, nullptr);
  args.int_low = low;
  args.int_range = range;
  return draw<T>(args, n);
}

// Chi-square over `range` values, within 5 standard deviations of its mean.
template <class T>
void expect_even(std::int64_t low, std::uint64_t range) {
  const std::int64_t n = 200000;
  std::vector<double> count(range, 0);
  for (T v : integers<T>(low, range, n)) {
    const auto place = static_cast<std::uint64_t>(static_cast<std::int64_t>(v) - low);
    ASSERT_LT(place, range);
    count[place] += 1;
  }
  const double expected = static_cast<double>(n) / static_cast<double>(range);
  double chi = 0;
  for (double c : count) chi += (c - expected) * (c - expected) / expected;
  const double freedom = static_cast<double>(range - 1);
  EXPECT_NEAR(chi, freedom, 5 * std::sqrt(2 * freedom) + 1e-9);
}

TEST(Random, integers_are_even_over_their_range) {
  expect_even<std::int8_t>(-128, 256);
  expect_even<std::uint8_t>(3, 7);
  expect_even<std::int16_t>(-300, 599);
  expect_even<std::int32_t>(-5, 10);
  expect_even<std::uint32_t>(0, 1000);
  expect_even<std::int64_t>(-50, 100);
}

TEST(Random, wide_integer_ranges_are_even_too) {
  // 3 * 2^62 values: without rejection a third of them would come twice as often.
  const std::uint64_t range = 3ull << 62;
  std::array<double, 3> thirds{};
  const std::int64_t n = 100000;
  for (std::uint64_t v : integers<std::uint64_t>(0, range, n)) {
    ASSERT_LT(v, range);
    thirds[v >> 62] += 1;
  }
  for (double c : thirds) EXPECT_NEAR(c, static_cast<double>(n) / 3, 5 * std::sqrt(static_cast<double>(n) * 2 / 9));
  double low_bit = 0;
  for (std::uint64_t v : integers<std::uint64_t>(0, range, n)) low_bit += static_cast<double>(v & 1);
  EXPECT_NEAR(low_bit, static_cast<double>(n) / 2, 5 * std::sqrt(static_cast<double>(n) / 4));
  double negative = 0;
  for (std::int64_t v : integers<std::int64_t>(0, 0, n)) negative += v < 0;
  EXPECT_NEAR(negative, static_cast<double>(n) / 2, 5 * std::sqrt(static_cast<double>(n) / 4));
}

// As each block by itself gives them: short ranges, of one word, are multiplied by less than others.
template <class T>
void expect_as_by_blocks(std::int64_t low, std::uint64_t range) {
  constexpr int kCount = philox::Integer<T>::kCount;
  const std::int64_t n = 3 * host_kernels::kLanes * kCount + 3;
  RandomArgs args = request(Distribution::kInteger, dtype_of_native<T>::value, n, nullptr);
  args.int_low = low;
  args.int_range = range;
  const auto sampler = philox::Integer<T>::make(args);
  const philox::Keys keys = philox::make_keys(kSeed);
  const std::vector<T> all = draw<T>(args, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t counter = args.offset + static_cast<std::uint64_t>(i / kCount);
    T one[kCount];
    sampler(philox::generate(keys, counter, 0), keys, counter, one);
    ASSERT_EQ(all[static_cast<std::size_t>(i)], one[i % kCount]) << range << " " << i;
  }
}

TEST(Random, integers_of_any_range_are_those_of_their_blocks) {
  for (const std::uint64_t range : {1ull, 2ull, 7ull, 255ull, 256ull}) {
    expect_as_by_blocks<std::int8_t>(-128, range);
    expect_as_by_blocks<std::uint16_t>(3, range);
  }
  constexpr std::uint64_t kWord = std::uint64_t{1} << 32;
  for (const std::uint64_t range :
       {std::uint64_t{1}, std::uint64_t{10}, kWord - 1, kWord, kWord + 1, 3 * (kWord << 29), std::uint64_t{0}}) {
    expect_as_by_blocks<std::int64_t>(-5, range);
    expect_as_by_blocks<std::uint64_t>(0, range);
    if (range != 0 && range <= kWord) expect_as_by_blocks<std::uint32_t>(0, range);
  }
}

TEST(Random, bool_takes_a_range_of_two) {
  std::array<bool, 1000> out{};
  RandomArgs args = request(Distribution::kInteger, DType::kBool, 1000, out.data());
  args.int_range = 2;
  ASSERT_EQ(host_kernels::random(args), 0);
  EXPECT_NEAR(static_cast<double>(std::count(out.begin(), out.end(), true)), 500, 80);
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kHuge = std::numeric_limits<double>::max();

// Three parameters of each element, or of all.
RandomArgs with(Distribution d, std::array<double, 3> p, const std::vector<double> (*arrays)[3] = nullptr) {
  RandomArgs args = request(d, DType::kInt64, 0, nullptr);
  args.a = p[0], args.b = p[1], args.c = p[2];
  for (std::size_t i = 0; arrays != nullptr && i < 3; ++i) args.arrays[i] = (*arrays)[i].data();
  return args;
}

// Another thread may write to an array after it was looked at: none may make a law draw for ever, or a count that is
// undefined.
TEST(Random, every_parameter_ends) {
  for (const double a : {kNaN, -1.0, 0.0, 1e-320, 0.3, 1.0, 1 + 0x1p-52, 9.999, 10.0, 1e15, 0x1p62, kHuge})
    for (const double b : {kNaN, -1.0, 0.0, 0.3, 1.0, 40.0, kHuge})
      for (const double c : {kNaN, 0.0, 7.0, kHuge}) {
        for (const auto d : distributions(true))
          for (std::int64_t k : draw<std::int64_t>(with(d, {a, b, c}), 99)) EXPECT_GE(k, 0) << a;
        for (const auto d : distributions(false)) EXPECT_EQ(draw<double>(with(d, {a, b, c}), 99).size(), 99u);
      }
  for (const double a : {kNaN, -1.0})
    EXPECT_EQ(draw<std::int64_t>(with(Distribution::kPoisson, {a, 1, 0}), 99), std::vector<std::int64_t>(99, 0));
  EXPECT_EQ(draw<std::int64_t>(with(Distribution::kZipf, {kNaN, 1, 0}), 99), std::vector<std::int64_t>(99, 1));
}

TEST(Random, parameters_in_arrays_draw_what_the_numbers_draw) {
  const std::vector<double> parameters[3] = {
      {3.5, 1e4, 1.25, 40, 10, 2.75, 9.5}, {0.5, 0.3, 0.02, 2, 1, 0.9, 7}, {5, 9, 2, 3.5, 30, 11, 1e3}};
  const auto same = [&]<class T>(Distribution d, T) {
    const std::vector<T> together = draw<T>(with(d, {0, 0, 0}, &parameters), 7);
    for (std::size_t i = 0; i < together.size(); ++i) {
      const std::vector<T> alone = draw<T>(with(d, {parameters[0][i], parameters[1][i], parameters[2][i]}), 7);
      EXPECT_EQ(std::memcmp(&alone[i], &together[i], sizeof(T)), 0) << static_cast<int>(d) << " " << i;
    }
  };
  for (const auto d : distributions(true)) same(d, std::int64_t{});
  for (const auto d : distributions(false))
    if (d >= Distribution::kLaplace) same(d, double{});  // the others' parameters are numbers
}

std::vector<std::int64_t> rows_of(MultinomialArgs args, std::int64_t rows, const std::vector<double>& chances) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(rows) * chances.size());
  args.rows = rows;
  args.outcomes = static_cast<std::int64_t>(chances.size());
  args.chances = chances.data();
  args.seed = kSeed;
  args.offset = 9;
  args.out = out.data();
  EXPECT_EQ(host_kernels::multinomial(args), 0);
  return out;
}

// The host makes numbers of many counters at once; a device asks for a row's alone.
TEST(Multinomial, rows_are_what_the_functor_gives) {
  const std::vector<double> many(9, 0.1);
  for (const auto& chances : {std::vector<double>{1}, {0.5, 0.5}, {0.2, 0.3, 0.5}, {0.1, 0.1, 0, 0.2, 0.3}, many})
    for (const double trials : {0.0, 1.0, 3.0, 20.0, 32.0, 33.0, 5000.0}) {
      MultinomialArgs args{};
      args.trials = trials;
      const std::vector<std::int64_t> out = rows_of(args, 301, chances);
      args.outcomes = static_cast<std::int64_t>(chances.size());
      args.chances = chances.data();
      args.seed = kSeed;
      args.offset = 9;
      philox::visit_multinomial(args, [&](const auto& law) {
        for (std::int64_t row = 0; row < 301; ++row) {
          std::array<std::int64_t, 9> counts{};
          law(row, counts.data());
          std::int64_t sum = 0;
          for (std::size_t k = 0; k < chances.size(); ++k) {
            EXPECT_EQ(counts[k], out[static_cast<std::size_t>(row) * chances.size() + k]) << trials << " " << row;
            sum += counts[k];
          }
          EXPECT_EQ(sum, static_cast<std::int64_t>(trials));
        }
        return 0;
      });
    }
}

TEST(Multinomial, every_parameter_ends) {
  const std::vector<double> trials = {kNaN, -1, 0x1p62, kHuge, 4, 4, 4};
  MultinomialArgs args{};
  args.trials_of_rows = trials.data();
  for (const double chance : {kNaN, -1.0, 0.0, 2.0, kHuge})
    for (std::int64_t k : rows_of(args, 7, {chance, 0.5, chance, 0.5})) EXPECT_GE(k, 0);
}

// Each word that inverts to another count: the sums of Poisson's probabilities.
TEST(Random, small_poisson_means_are_inverted) {
  const philox::Keys keys = philox::make_keys(kSeed);
  for (const double mean : {0.0, 0.3, 9.9}) {
    const philox::Poisson law = philox::Poisson::of(mean);
    double sum = 0, p = std::exp(-mean);
    for (int k = 0; k < 20 && p > 1e-12; p *= mean / ++k) {
      sum += p;
      for (const double u : {sum - 1e-13, sum + 1e-13}) {
        if (u >= 1) continue;
        const auto bits = static_cast<std::uint64_t>(u * 0x1p53) << 11;
        const philox::Block block{{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), 0, 0}};
        EXPECT_EQ(law.draw(block, keys, 0, 0), u < sum ? k : k + 1) << mean;
      }
    }
  }
}

TEST(Random, refuses_dtypes_that_a_distribution_lacks) {
  std::array<std::int64_t, 4> out{};
  EXPECT_EQ(host_kernels::random(request(Distribution::kNormal, DType::kInt32, 4, out.data())), kErrorUnsupported);
  EXPECT_EQ(host_kernels::random(request(Distribution::kInteger, DType::kFloat32, 4, out.data())), kErrorUnsupported);
  EXPECT_EQ(host_kernels::random(request(Distribution::kPoisson, DType::kInt32, 4, out.data())), kErrorUnsupported);
}

}  // namespace
}  // namespace dlbridge::nd
